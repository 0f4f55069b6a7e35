import io.lettuce.core.cluster.api.sync.RedisClusterCommands;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;

/** Threads that take one lock over and over. compete.ts does the same. */
final class Competition {
  private final RedisClusterCommands<String, String> oracle;
  private final Lock lock;
  private final String inside;
  private final AtomicInteger turns = new AtomicInteger();
  private final AtomicInteger violations = new AtomicInteger();
  private final AtomicLong longest = new AtomicLong();
  private volatile long leftAt;

  Competition(RedisClusterCommands<String, String> oracle, Lock lock, String key) {
    this.oracle = oracle;
    this.lock = lock;
    this.inside = key + ":inside";
  }

  /**
   * Each of the threads holds the lock for `work` ms, again and again, until `ms` are over. Returns the turns, the
   * longest time in ms in which none of them had the lock, and the violations of exclusion.
   */
  String run(int threads, int work, long ms) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    long start = System.nanoTime();
    leftAt = start;
    long end = start + ms * 1_000_000;
    List<Future<?>> workers = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      workers.add(pool.submit(() -> {
        while (System.nanoTime() < end) turn(work, end);
        return null;
      }));
    }
    for (Future<?> worker : workers) worker.get();
    pool.shutdown();
    return turns + "," + longest + "," + violations;
  }

  private void turn(int work, long end) throws Exception {
    lock.lock();
    try {
      long entered = System.nanoTime();
      longest.accumulateAndGet((entered - leftAt) / 1_000_000, Math::max);
      if (oracle.incr(inside) != 1) violations.incrementAndGet();
      if (entered < end) turns.incrementAndGet();
      if (work > 0) Thread.sleep(work);
      if (oracle.decr(inside) != 0) violations.incrementAndGet();
    } finally {
      leftAt = System.nanoTime();
      lock.unlock();
    }
  }
}
