/** One acquisition by one caller. */
final class Acquisition {
  private static final double NOT_YET = Double.POSITIVE_INFINITY;

  private final int caller;
  private final int weight;
  private final double requestedAt = Observation.now();
  private volatile double enteredAt = NOT_YET;
  private volatile double leftAt = NOT_YET;

  Acquisition(int caller, int weight) {
    this.caller = caller;
    this.weight = weight;
  }

  void entered() {
    enteredAt = Observation.now();
  }

  void left() {
    leftAt = Observation.now();
  }

  /** What it is now. JSON has no infinite numbers: null stands for "not yet". */
  Record record() {
    return new Record(caller, weight, requestedAt, orNull(enteredAt), orNull(leftAt));
  }

  private static Double orNull(double time) {
    return time == NOT_YET ? null : time;
  }

  record Record(int caller, int weight, double requestedAt, Double enteredAt, Double leftAt) {
  }
}
