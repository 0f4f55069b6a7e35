import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;

/**
 * ShedLock on Redis, with safeUpdate: without it, unlock deletes the lock of another holder. It skips a job whose lock is
 * held; here an attempt is made again after a pause.
 */
final class ShedLocks implements Locks {
  private static final long PAUSE_MS = 100;

  private final LockProvider provider;
  private final Duration ttl;
  private final ThreadLocal<Map<String, SimpleLock>> held = ThreadLocal.withInitial(HashMap::new);

  ShedLocks(Address address, long ttl) {
    this.provider = new RedisLockProvider.Builder(SpringLocks.connect(address)).safeUpdate(true).build();
    this.ttl = Duration.ofMillis(ttl);
  }

  @Override
  public Lock obtain(String key) {
    return new Job(key);
  }

  @Override
  public String nameOf(String key) {
    return "job-lock:default:" + key;
  }

  @Override
  public String about(String key) {
    return obtain(key).tryLock() ? "lock: taken" : "lock: empty";
  }

  private final class Job implements Lock {
    private final String key;

    Job(String key) {
      this.key = key;
    }

    @Override
    public boolean tryLock() {
      Optional<SimpleLock> lock = provider.lock(new LockConfiguration(Instant.now(), key, ttl, Duration.ZERO));
      lock.ifPresent(taken -> held.get().put(key, taken));
      return lock.isPresent();
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
      long end = System.nanoTime() + unit.toNanos(time);
      while (!tryLock()) {
        if (System.nanoTime() > end) return false;
        Thread.sleep(PAUSE_MS);
      }
      return true;
    }

    @Override
    public void lock() {
      try {
        tryLock(Integer.MAX_VALUE, TimeUnit.SECONDS);
      } catch (InterruptedException error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
      tryLock(Integer.MAX_VALUE, TimeUnit.SECONDS);
    }

    @Override
    public void unlock() {
      SimpleLock lock = held.get().remove(key);
      if (lock == null) throw new IllegalMonitorStateException("Lock " + key + " is not held");
      lock.unlock();
    }

    @Override
    public Condition newCondition() {
      throw new UnsupportedOperationException();
    }
  }
}
