import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.sync.RedisClusterCommands;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;

/**
 * A Java process that executes lock commands. Arguments: port of Redis or "cluster:" and the ports of its masters, and, for
 * Spring, registryKey.
 *
 * A line of stdin is "id kind caller ttl verb key argument...", its reply on stdout "id ok value" or "id error message". A
 * caller is a thread that executes its commands in order; callers do not wait for each other. The ttl, in ms, is that of
 * renewed locks. The process ends with its stdin. node-peer.ts implements the same protocol.
 */
public final class Peer {
  private final Map<String, ExecutorService> callers = new ConcurrentHashMap<>();
  private final Map<String, Locks> locks = new ConcurrentHashMap<>();
  private final RedisClusterCommands<String, String> redis;
  private final RedisClusterCommands<String, String> oracle;
  private final Address address;
  private final String registryKey;

  private Peer(Address address, String registryKey) {
    this.address = address;
    this.registryKey = registryKey;
    this.redis = connect();
    this.oracle = connect();
  }

  private RedisClusterCommands<String, String> connect() {
    if (!address.isCluster()) return RedisClient.create(address.urls().get(0)).connect().sync();
    return RedisClusterClient.create(address.urls().stream().map(RedisURI::create).toList()).connect().sync();
  }

  public static void main(String[] args) throws Exception {
    Peer peer = new Peer(Address.of(args[0]), args.length > 1 ? args[1] : "");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    say("ready");
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      peer.hear(line.split(" "));
    }
    Runtime.getRuntime().halt(0);
  }

  private void hear(String[] words) {
    String caller = words[2];
    callers.computeIfAbsent(caller, name -> Executors.newSingleThreadExecutor()).execute(() -> {
      try {
        long ttl = Long.parseLong(words[3]);
        String[] rest = Arrays.copyOfRange(words, 6, words.length);
        say(words[0] + " ok " + obey(locksOf(words[1], ttl), words[4], words[5], rest));
      } catch (Throwable error) {
        say(words[0] + " error " + error.toString().replace('\n', ' '));
      }
    });
  }

  private Locks locksOf(String kind, long ttl) {
    return locks.computeIfAbsent(kind + ttl, name -> {
      if (kind.equals("shedlock")) return new ShedLocks(address, ttl);
      return kind.startsWith("spring")
          ? new SpringLocks(kind, address, registryKey, ttl)
          : new RedissonLocks(kind, address, ttl);
    });
  }

  private Object obey(Locks locks, String verb, String key, String[] arguments) throws Exception {
    Lock lock = locks.obtain(key);
    switch (verb) {
      case "lock":
        lock.lock();
        return true;
      case "tryLock":
        return arguments.length == 0
            ? lock.tryLock()
            : lock.tryLock(Long.parseLong(arguments[0]), TimeUnit.MILLISECONDS);
      case "unlock":
        lock.unlock();
        return true;
      case "holds":
        return locks.holds(key);
      case "remaining":
        return redis.pttl(locks.nameOf(key));
      case "token":
        return locks.token(key);
      case "count":
        return count(lock, key, Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1]));
      case "about":
        return locks.about(key);
      case "compete":
        return new Competition(oracle, lock, arguments.length > 3 ? arguments[3] : key).run(
            Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1]), Long.parseLong(arguments[2]));
      default:
        throw new IllegalArgumentException(verb);
    }
  }

  /** Increments a counter by reading and writing it, and judges from outside who is inside. Returns the violations. */
  private int count(Lock lock, String key, int threads, int times) throws Exception {
    AtomicInteger violations = new AtomicInteger();
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    List<Future<?>> workers = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      workers.add(pool.submit(() -> {
        for (int round = 0; round < times; round++) {
          lock.lock();
          try {
            if (oracle.incr(key + ":inside") != 1) violations.incrementAndGet();
            String before = oracle.get(key + ":counter");
            oracle.set(key + ":counter", String.valueOf((before == null ? 0 : Long.parseLong(before)) + 1));
            if (oracle.decr(key + ":inside") != 0) violations.incrementAndGet();
          } finally {
            lock.unlock();
          }
        }
      }));
    }
    for (Future<?> worker : workers) worker.get();
    pool.shutdown();
    return violations.get();
  }

  private static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
