import java.util.concurrent.locks.Lock;
import java.util.function.Function;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson with its defaults; its watchdog renews for `ttl`. */
record RedissonLocks(Function<String, Lock> exclusive, Function<String, Lock> shared) implements Locks {
  static Locks open(String candidate, String host, String port, long ttl) {
    Config config = new Config();
    config.setLockWatchdogTimeout(ttl);
    config.useSingleServer().setAddress("redis://" + host + ":" + port);
    RedissonClient redisson = Redisson.create(config);
    switch (candidate) {
      case "redisson-lock":
        return new RedissonLocks(redisson::getLock, RedissonLocks::none);
      case "redisson-fair-lock":
        return new RedissonLocks(redisson::getFairLock, RedissonLocks::none);
      case "redisson-read-write-lock":
        return new RedissonLocks(
            key -> redisson.getReadWriteLock(key).writeLock(), key -> redisson.getReadWriteLock(key).readLock());
      default:
        throw new IllegalArgumentException("no candidate " + candidate);
    }
  }

  private static Lock none(String key) {
    throw new UnsupportedOperationException("it has no readers");
  }

  @Override
  public Lock lock(String key) {
    return exclusive.apply(key);
  }

  @Override
  public Lock sharedLock(String key) {
    return shared.apply(key);
  }
}
