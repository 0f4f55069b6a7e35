import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.redisson.Redisson;
import org.redisson.api.RReadWriteLock;
import org.redisson.config.Config;

/**
 * A worker process of the bench in Java, with the load "callers" of Redisson's read/write lock; worker.ts and loads.ts have
 * the ones in Node, and describe the messages. Arguments: candidate, host, port, ttl in ms.
 *
 * It replies to each request, a line of JSON on stdin, with a line of JSON on stdout, and says {} when it has started. It
 * ends with its stdin.
 */
public final class Worker {
  private static final ObjectMapper JSON =
      new ObjectMapper().configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private static final double WARM_UP_PACE = 0.1;

  /** Absent numbers are 0. */
  record Settings(int callers, int permits, int readers, double work, double pause, double pauseJitter) {}

  private final RReadWriteLock lock;
  private final Set<Acquisition> waiting = ConcurrentHashMap.newKeySet();
  private final AtomicInteger taken = new AtomicInteger();
  private final AtomicInteger violations = new AtomicInteger();
  private volatile double pace = 1;
  private volatile Queue<Acquisition> log = new ConcurrentLinkedQueue<>();

  private Worker(RReadWriteLock lock) {
    this.lock = lock;
  }

  public static void main(String[] args) {
    Thread.setDefaultUncaughtExceptionHandler((thread, error) -> fail(error));
    try {
      Config config = new Config();
      config.setLockWatchdogTimeout(Long.parseLong(args[3]));
      config.useSingleServer().setAddress("redis://" + args[1] + ":" + args[2]);
      Worker worker = new Worker(Redisson.create(config).getReadWriteLock("key-0"));
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
      pace = request.path("isWarmUp").asBoolean() ? WARM_UP_PACE : 1;
      return Map.of("observation", observe(request.get("observe").asLong()));
    }
    if (!request.path("load").asText().equals("callers")) throw new IllegalArgumentException("it has no such load");
    Settings settings = JSON.treeToValue(request.get("settings"), Settings.class);
    for (int i = 0; i < settings.callers(); i++) {
      int caller = i;
      Thread thread = new Thread(() -> loop(caller, settings));
      thread.setDaemon(true);
      thread.start();
    }
    return Map.of();
  }

  private void loop(int caller, Settings settings) {
    for (;;) {
      acquireOnce(caller, settings);
      if (settings.pause() > 0) sleep(settings.pause(), settings.pauseJitter());
    }
  }

  private void acquireOnce(int caller, Settings settings) {
    boolean isReader = caller < settings.readers();
    int weight = isReader ? 1 : settings.permits();
    Acquisition acquisition = new Acquisition(caller, weight);
    waiting.add(acquisition);
    Lock side = isReader ? lock.readLock() : lock.writeLock();
    side.lock();
    acquisition.enteredAt = now();
    log.add(acquisition);
    waiting.remove(acquisition);
    if (taken.addAndGet(weight) > settings.permits()) violations.incrementAndGet();
    if (settings.work() > 0) sleep(settings.work(), 0);
    taken.addAndGet(-weight);
    acquisition.leftAt = now();
    side.unlock();
  }

  /** At the pace of the load, for `ms` and a random addition of up to `jitter`. */
  private void sleep(double ms, double jitter) {
    double duration = pace * (ms + (jitter > 0 ? ThreadLocalRandom.current().nextDouble(jitter) : 0));
    long end = System.nanoTime() + (long) (duration * 1e6);
    for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) LockSupport.parkNanos(left);
  }

  private Map<String, Object> observe(long ms) throws Exception {
    double startedAt = now();
    long cpuBefore = SYSTEM.getProcessCpuTime();
    log = new ConcurrentLinkedQueue<>();
    Thread.sleep(ms);
    double cpu = (SYSTEM.getProcessCpuTime() - cpuBefore) / 1e6;
    // Before the log is read: what is missing in it happened after the end.
    double end = now();
    // In this order, since an acquisition goes from `waiting` to the log; for a moment it is in both.
    Stream<Acquisition> all = Stream.concat(Set.copyOf(waiting).stream(), log.stream()).distinct();
    List<Map<String, Object>> acquisitions = all.map(Acquisition::message).toList();
    return Map.of(
        "time", end - startedAt, "end", end, "cpu", cpu, "durations", List.of(), "acquisitions", acquisitions,
        "violations", violations.get(), "each", Map.of());
  }

  /** ms of the machine's monotonic clock, as `now` in loads.ts. */
  private static double now() {
    return System.nanoTime() / 1e6;
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

  /** One acquisition by one caller. */
  private static final class Acquisition {
    private final int caller;
    private final int weight;
    private final double requestedAt = now();
    private volatile Double enteredAt;
    private volatile Double leftAt;

    Acquisition(int caller, int weight) {
      this.caller = caller;
      this.weight = weight;
    }

    /** JSON has no infinite numbers: what is absent has not happened yet. */
    Map<String, Object> message() {
      Map<String, Object> message = new java.util.HashMap<>();
      message.put("caller", caller);
      message.put("weight", weight);
      message.put("requestedAt", requestedAt);
      message.put("enteredAt", enteredAt);
      message.put("leftAt", leftAt);
      return message;
    }
  }
}
