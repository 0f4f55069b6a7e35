import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Map;

/** What one process measured in one window; loads/load.ts describes it. */
record Observation(
    double time,
    double end,
    double cpu,
    double[] durations,
    Acquisition.Record[] acquisitions,
    int violations,
    Map<String, Double> heap) {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  static Observation of(Load load, long ms) throws Exception {
    double startedAt = now();
    long cpuBefore = SYSTEM.getProcessCpuTime();
    load.observe(ms);
    double cpu = (SYSTEM.getProcessCpuTime() - cpuBefore) / 1e6;
    // Before the result is read: what is missing in it happened after the end.
    double end = now();
    Load.Result result = load.result();
    return new Observation(
        end - startedAt, end, cpu, result.durations(), result.acquisitions(), result.violations(), Map.of());
  }

  /** ms of the machine's monotonic clock, as `now` in clock.ts. */
  static double now() {
    return System.nanoTime() / 1e6;
  }
}
