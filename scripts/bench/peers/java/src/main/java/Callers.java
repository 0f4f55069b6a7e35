import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/** Threads that lock, work and unlock in a loop. Every acquisition is recorded; as loads/callers.ts. */
final class Callers implements Load {
  private final Locks locks;
  private final Settings settings;
  private final int permits;
  private final Set<Acquisition> waiting = ConcurrentHashMap.newKeySet();
  private final AtomicIntegerArray taken;
  private final AtomicInteger violations = new AtomicInteger();
  private volatile double pace = 1;
  private volatile Queue<Acquisition> log = new ConcurrentLinkedQueue<>();

  Callers(Locks locks, Settings settings) {
    if (settings.together() > 0) throw new IllegalArgumentException("it cannot lock several keys");
    this.locks = locks;
    this.settings = settings;
    permits = Math.max(1, settings.permits());
    taken = new AtomicIntegerArray(settings.keys());
    for (int i = 0; i < settings.callers(); i++) {
      int caller = i;
      Thread thread = new Thread(() -> loop(caller));
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void loop(int caller) {
    for (;;) {
      acquireOnce(caller);
      if (settings.pause() > 0) sleep(settings.pause(), settings.pauseJitter());
    }
  }

  private void acquireOnce(int caller) {
    int key = caller % settings.keys();
    boolean isReader = caller < settings.readers();
    int weight = settings.readers() > 0 && !isReader ? permits : 1;
    Acquisition acquisition = new Acquisition(caller, weight);
    waiting.add(acquisition);
    Lock lock = isReader ? locks.sharedLock("key-" + key) : locks.lock("key-" + key);
    lock.lock();
    acquisition.entered();
    log.add(acquisition);
    waiting.remove(acquisition);

    if (taken.addAndGet(key, weight) > permits) violations.incrementAndGet();
    if (settings.work() > 0) sleep(settings.work(), settings.workJitter());
    taken.addAndGet(key, -weight);

    acquisition.left();
    lock.unlock();
  }

  /** At the pace of the load, for `ms` and a random addition of up to `jitter`. */
  private void sleep(double ms, double jitter) {
    double duration = pace * (ms + (jitter > 0 ? ThreadLocalRandom.current().nextDouble(jitter) : 0));
    long end = System.nanoTime() + (long) (duration * 1e6);
    for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) LockSupport.parkNanos(left);
  }

  @Override
  public void setPace(double pace) {
    this.pace = pace;
  }

  @Override
  public void observe(long ms) throws Exception {
    log = new ConcurrentLinkedQueue<>();
    Thread.sleep(ms);
  }

  @Override
  public Result result() {
    // In this order, since an acquisition goes from `waiting` to the log; for a moment it is in both.
    Stream<Acquisition> all = Stream.concat(Set.copyOf(waiting).stream(), log.stream()).distinct();
    return new Result(new double[0], all.map(Acquisition::record).toArray(Acquisition.Record[]::new), violations.get());
  }
}
