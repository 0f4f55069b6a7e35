import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * A worker process of the bench in Java; worker.ts is the one in Node. Arguments: candidate, host, port, ttl in ms.
 *
 * It replies to each request, a line of JSON on stdin, with a line of JSON on stdout, and says {} when it has started. It
 * ends with its stdin.
 */
public final class Worker {
  private static final ObjectMapper JSON =
      new ObjectMapper().configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);

  /** As in loads/callers.ts. */
  private static final double WARM_UP_PACE = 0.1;

  private final Locks locks;
  private Load load;

  private Worker(Locks locks) {
    this.locks = locks;
  }

  public static void main(String[] args) throws Exception {
    Thread.setDefaultUncaughtExceptionHandler((thread, error) -> fail(error));
    try {
      Worker worker = new Worker(RedissonLocks.open(args[0], args[1], args[2], Long.parseLong(args[3])));
      reply(Map.of());
      BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        reply(worker.execute(JSON.readTree(line)));
      }
    } catch (Throwable error) {
      fail(error);
    }
    Runtime.getRuntime().halt(0);
  }

  private Map<String, Object> execute(JsonNode request) throws Exception {
    if (request.has("observe")) {
      load.setPace(request.path("isWarmUp").asBoolean() ? WARM_UP_PACE : 1);
      return Map.of("observation", Observation.of(load, request.get("observe").asLong()));
    }
    Settings settings = JSON.treeToValue(request.get("settings"), Settings.class);
    switch (request.get("load").asText()) {
      case "cycles":
        load = new Cycles(locks, settings);
        break;
      case "callers":
        load = new Callers(locks, settings);
        break;
      default:
        throw new IllegalArgumentException("no load " + request.get("load"));
    }
    return Map.of();
  }

  private static synchronized void reply(Object message) throws Exception {
    System.out.println(JSON.writeValueAsString(message));
    System.out.flush();
  }

  private static void fail(Throwable error) {
    try {
      reply(Map.of("fault", String.valueOf(error).replace('\n', ' ')));
    } catch (Exception unreachable) {
      // The bench sees that the process ends.
    }
    Runtime.getRuntime().halt(1);
  }
}
