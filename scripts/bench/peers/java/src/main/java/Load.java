/** Work of a process, which is observed in windows. */
interface Load {
  /** 1; less while it warms up, when it may run at a faster pace: work and pauses take that part of their time. */
  default void setPace(double pace) {
  }

  /** Observes it for `ms`. */
  void observe(long ms) throws Exception;

  /** Of the window that has just ended. */
  Result result();

  /** ms of each cycle, or the acquisitions; and how often two callers were inside that exclude each other. */
  record Result(double[] durations, Acquisition.Record[] acquisitions, int violations) {
  }
}
