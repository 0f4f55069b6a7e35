import java.util.Arrays;
import java.util.List;

/** Where Redis is: one server, or the masters of a cluster. */
record Address(boolean isCluster, List<String> hosts) {
  private static final String CLUSTER = "cluster:";

  /** Of a port, or of "cluster:" and ports. */
  static Address of(String text) {
    boolean isCluster = text.startsWith(CLUSTER);
    String ports = isCluster ? text.substring(CLUSTER.length()) : text;
    return new Address(isCluster, Arrays.stream(ports.split(",")).map(port -> "127.0.0.1:" + port).toList());
  }

  List<String> urls() {
    return hosts.stream().map(host -> "redis://" + host).toList();
  }
}
