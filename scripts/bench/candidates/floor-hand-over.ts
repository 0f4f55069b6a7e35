import type { NodeCandidate, Release } from './candidate';
import { rawNodeRedis } from './clients';
import { LocalQueues } from './local-queues';
import { nextOwner, RawScripts } from './raw-scripts';

/** Hand-over between the callers of one process: one script makes the next caller the owner. */
export const floorHandOver: NodeCandidate = {
  id: 'floor-hand-over',
  title: 'floor: FIFO, one hand-over script',
  kind: 'floor',
  packages: ['redis'],
  async open({ address, ttl }) {
    const scripts = await RawScripts.load(await rawNodeRedis(address), 'acquire', 'release', 'handOver');
    const ttlArgument = String(ttl);
    const queues = new LocalQueues<string>();
    return {
      async acquire(key): Promise<Release> {
        let owner = await queues.enter(key);
        if (owner === undefined) {
          owner = nextOwner();
          await scripts.run('acquire', [key], owner, ttlArgument);
        }
        const mine = owner;
        return async () => {
          const next = queues.hasWaiters(key) ? nextOwner() : undefined;
          await (next === undefined
            ? scripts.run('release', [key], mine)
            : scripts.run('handOver', [key], mine, next, ttlArgument));
          queues.leave(key, next);
        };
      },
    };
  },
};
