import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson's RLock for `npm run torture`; torture/peers.ts describes the lines. Arguments: host, port, ttl and wait in ms.
 */
public final class LockPeer {
  /** Redisson knows a holder by its thread. */
  private record Call(RLock lock, ExecutorService thread) {}

  public static void main(String[] args) throws Exception {
    Config config = new Config();
    config.setLockWatchdogTimeout(Long.parseLong(args[2]));
    config.useSingleServer().setAddress("redis://" + args[0] + ":" + args[1]);
    RedissonClient redisson = Redisson.create(config);
    long wait = Long.parseLong(args[3]);
    Map<String, Call> calls = new ConcurrentHashMap<>();
    System.out.println("ready");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ");
      String id = words[1];
      if (words[0].equals("lock")) {
        calls.put(id, new Call(redisson.getLock(words[2]), Executors.newSingleThreadExecutor()));
      }
      Call call = calls.get(id);
      call.thread.execute(
          () -> {
            String answer = answer(words[0], call.lock, wait);
            if (words[0].equals("release") || (words[0].equals("lock") && !answer.equals("yes"))) {
              calls.remove(id);
              call.thread.shutdown();
            }
            System.out.println(words[0] + " " + id + " " + answer);
          });
    }
    Runtime.getRuntime().halt(0);
  }

  private static String answer(String request, RLock lock, long wait) {
    try {
      switch (request) {
        case "lock":
          return lock.tryLock(wait, TimeUnit.MILLISECONDS) ? "yes" : "no";
        case "state":
          return lock.isHeldByCurrentThread() ? "yes" : "no";
        default:
          lock.unlock();
          return "yes";
      }
    } catch (Exception error) {
      return "failed " + error.toString().replace('\n', ' ');
    }
  }
}
