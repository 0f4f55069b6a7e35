import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's RLock and fair lock, renewed by its watchdog. */
final class RedissonLocks implements Locks {
  private final RedissonClient redisson;
  private final String kind;

  RedissonLocks(String kind, Address address, long ttl) {
    this.kind = kind;
    Config config = new Config();
    config.setLockWatchdogTimeout(ttl);
    config.setThreads(4);
    config.setNettyThreads(4);
    if (address.isCluster()) {
      config.useClusterServers()
          .addNodeAddress(address.urls().toArray(String[]::new))
          .setMasterConnectionMinimumIdleSize(2)
          .setMasterConnectionPoolSize(8);
    } else {
      config.useSingleServer()
          .setAddress(address.urls().get(0))
          .setConnectionMinimumIdleSize(2)
          .setConnectionPoolSize(8);
    }
    redisson = Redisson.create(config);
  }

  @Override
  public RLock obtain(String key) {
    switch (kind) {
      case "redisson-fair":
        return redisson.getFairLock(key);
      case "redisson-spin":
        return redisson.getSpinLock(key);
      default:
        return redisson.getLock(key);
    }
  }

  @Override
  public String nameOf(String key) {
    return key;
  }

  @Override
  public int holds(String key) {
    return obtain(key).getHoldCount();
  }

  @Override
  public long token(String key) {
    RFencedLock lock = redisson.getFencedLock(key);
    long token = lock.lockAndGetToken();
    lock.unlock();
    return token;
  }
}
