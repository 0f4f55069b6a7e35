import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** Spring Integration's RedisLockRegistry, with automatic renewal where its version has it. */
final class SpringLocks implements Locks {
  private final RedisLockRegistry registry;
  private final String registryKey;

  SpringLocks(String kind, Address address, String registryKey, long ttl) {
    this.registryKey = registryKey;
    LettuceConnectionFactory connections = connect(address);
    ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
    scheduler.initialize();
    registry = create(connections, registryKey, ttl);
    callIfPresent(registry, "setRenewalTaskScheduler", scheduler); // since 6.4
    registry.setRedisLockType(kind.equals("spring-pub-sub") ? RedisLockType.PUB_SUB_LOCK : RedisLockType.SPIN_LOCK);
  }

  static LettuceConnectionFactory connect(Address address) {
    LettuceConnectionFactory connections = address.isCluster()
        ? new LettuceConnectionFactory(new RedisClusterConfiguration(address.hosts()))
        : new LettuceConnectionFactory(standalone(address));
    connections.afterPropertiesSet();
    callIfPresent(connections, "start"); // since Spring Data Redis 3
    return connections;
  }

  private static RedisStandaloneConfiguration standalone(Address address) {
    String[] parts = address.hosts().get(0).split(":");
    return new RedisStandaloneConfiguration(parts[0], Integer.parseInt(parts[1]));
  }

  /** The ttl is a number of ms before 7. */
  private static RedisLockRegistry create(Object connections, String registryKey, long ttl) {
    try {
      for (Constructor<?> constructor : RedisLockRegistry.class.getConstructors()) {
        Class<?>[] types = constructor.getParameterTypes();
        if (types.length != 3) continue;
        Object expireAfter = types[2] == long.class ? ttl : Duration.ofMillis(ttl);
        return (RedisLockRegistry) constructor.newInstance(connections, registryKey, expireAfter);
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    throw new IllegalStateException("RedisLockRegistry has no constructor with a ttl");
  }

  private static void callIfPresent(Object target, String name, Object... arguments) {
    try {
      for (Method method : target.getClass().getMethods()) {
        if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
          method.invoke(target, arguments);
        }
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  @Override
  public Lock obtain(String key) {
    return registry.obtain(key);
  }

  @Override
  public String nameOf(String key) {
    return registryKey + ":" + key;
  }
}
