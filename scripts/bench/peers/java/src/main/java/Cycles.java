import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.Lock;
import java.util.stream.DoubleStream;

/** Threads that lock and unlock keys of their own in a loop, only while they are observed; as loads/cycles.ts. */
final class Cycles implements Load {
  private final Locks locks;
  private final int callers;
  private final int keysEach;
  private final ExecutorService threads;
  /** Each caller continues where the window before ended. */
  private final int[] cyclesOf;
  private double[] durations = {};

  Cycles(Locks locks, Settings settings) {
    if (settings.together() > 0) throw new IllegalArgumentException("it cannot lock several keys");
    this.locks = locks;
    callers = settings.callers();
    keysEach = Math.max(1, settings.keysEach());
    threads = Executors.newFixedThreadPool(callers);
    cyclesOf = new int[callers];
  }

  @Override
  public void observe(long ms) throws Exception {
    long end = System.nanoTime() + ms * 1_000_000;
    List<Future<double[]>> results = new ArrayList<>();
    for (int i = 0; i < callers; i++) {
      int caller = i;
      results.add(threads.submit(() -> loop(caller, end)));
    }
    DoubleStream all = DoubleStream.empty();
    for (Future<double[]> result : results) all = DoubleStream.concat(all, Arrays.stream(result.get()));
    durations = all.toArray();
  }

  private double[] loop(int caller, long end) {
    DoubleStream.Builder times = DoubleStream.builder();
    long startedAt = System.nanoTime();
    while (startedAt < end) {
      Lock lock = locks.lock("key-" + (caller * keysEach + cyclesOf[caller]++ % keysEach));
      lock.lock();
      lock.unlock();
      long endedAt = System.nanoTime();
      times.add((endedAt - startedAt) / 1e6);
      startedAt = endedAt;
    }
    return times.build().toArray();
  }

  @Override
  public Result result() {
    return new Result(durations, new Acquisition.Record[0], 0);
  }
}
