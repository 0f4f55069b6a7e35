import java.util.concurrent.locks.Lock;

/** A lock library. */
interface Locks {
  Lock lock(String key);

  /** The lock of a reader, while `lock` is that of the only writer. */
  Lock sharedLock(String key);
}
