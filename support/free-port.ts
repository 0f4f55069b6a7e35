import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** A cluster node listens on its port and on its port + 10,000. */
const TO_CLUSTER_BUS = 10_000;

/** Below the ports that systems give to outgoing connections (32,768 and up on Linux): none of them takes it meanwhile. */
const LOWEST = 10_000;
const HIGHEST = 32_767 - TO_CLUSTER_BUS;

/** A TCP port on loopback that is free, and whose cluster bus port is free. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    if ((await isFree(port)) && (await isFree(port + TO_CLUSTER_BUS))) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
