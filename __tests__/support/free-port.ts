import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/** A cluster node listens on its port and on its port + 10,000. */
const HIGHEST = 65_535 - 10_000;

/** A free TCP port on loopback, low enough for a node of a cluster. */
export async function freePort(): Promise<number> {
  for (;;) {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address() as AddressInfo;
    probe.close();
    await once(probe, 'close');
    if (port <= HIGHEST) return port;
  }
}
