import java.util.concurrent.locks.Lock;

/** The locks of one library. */
interface Locks {
  Lock obtain(String key);

  /** What the lock of this key is called in Redis. */
  String nameOf(String key);

  /** What it says of a lock that another program holds. */
  default String about(String key) {
    throw new UnsupportedOperationException();
  }

  /** How often the current thread holds it. Spring does not say it. */
  default int holds(String key) {
    throw new UnsupportedOperationException();
  }

  /** The fencing token of an acquisition that is given back at once. Spring has none. */
  default long token(String key) {
    throw new UnsupportedOperationException();
  }
}
