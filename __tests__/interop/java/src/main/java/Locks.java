import java.util.concurrent.locks.Lock;

/** The locks of one library. */
interface Locks {
  Lock obtain(String key);

  /** What the lock of this key is called in Redis. */
  String nameOf(String key);

  /** How often the current thread holds it. */
  int holds(String key);

  /** The fencing token of an acquisition that is given back at once. */
  long token(String key);
}
