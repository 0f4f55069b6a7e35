import java.time.Duration;
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** Spring Integration's RedisLockRegistry, with automatic renewal. */
final class SpringLocks implements Locks {
  private final RedisLockRegistry registry;
  private final String registryKey;

  SpringLocks(String kind, int port, String registryKey, long ttl) {
    this.registryKey = registryKey;
    LettuceConnectionFactory connections = new LettuceConnectionFactory("127.0.0.1", port);
    connections.afterPropertiesSet();
    connections.start();
    ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
    scheduler.initialize();
    registry = new RedisLockRegistry(connections, registryKey, Duration.ofMillis(ttl));
    registry.setRenewalTaskScheduler(scheduler);
    registry.setIdleBetweenTries(Duration.ofMillis(20));
    registry.setRedisLockType(kind.equals("spring-pub-sub") ? RedisLockType.PUB_SUB_LOCK : RedisLockType.SPIN_LOCK);
  }

  @Override
  public Lock obtain(String key) {
    return registry.obtain(key);
  }

  @Override
  public String nameOf(String key) {
    return registryKey + ":" + key;
  }

  @Override
  public int holds(String key) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long token(String key) {
    throw new UnsupportedOperationException();
  }
}
