import type { NodeCandidate } from './candidate';
import { rawNodeRedis } from './clients';
import { nextOwner, RawScripts } from './raw-scripts';

/** ms; the default of our option `replicaTimeout`. */
const TIMEOUT = 100;

/** Acquires by script, and waits until one replica has it, on the same connection. */
export const floorWait: NodeCandidate = {
  id: 'floor-wait',
  title: 'floor: EVALSHA + WAIT 1, EVALSHA',
  kind: 'floor',
  packages: ['redis'],
  async open({ address, ttl }) {
    const client = await rawNodeRedis(address);
    const scripts = await RawScripts.load(client, 'acquire', 'release');
    const ttlArgument = String(ttl);
    return {
      async acquire(key) {
        const owner = nextOwner();
        // Both are written in one tick: one round trip, and the time of the replica.
        await Promise.all([scripts.run('acquire', [key], owner, ttlArgument), client.wait(1, TIMEOUT)]);
        return () => scripts.run('release', [key], owner);
      },
    };
  },
};
