import type { Candidate, Release } from './candidate';
import { rawNodeRedis } from './clients';
import { Fifos } from './fifo';
import { nextOwner, RawScripts } from './raw-scripts';

/** Hand-over between the callers of one process: one script makes the next one the owner, and nobody else gets a chance. */
export const floorTransfer: Candidate = {
  id: 'floor-transfer',
  title: 'floor: FIFO, one transfer script',
  kind: 'floor',
  packages: ['redis'],
  async open({ address, ttl }) {
    const scripts = await RawScripts.load(await rawNodeRedis(address), 'acquire', 'release', 'transfer');
    const life = String(ttl);
    const fifos = new Fifos<string>();
    return {
      async acquire(key): Promise<Release> {
        let owner = await fifos.enter(key);
        if (owner === undefined) {
          owner = nextOwner();
          await scripts.run('acquire', [key], owner, life);
        }
        const mine = owner;
        return async () => {
          const next = fifos.isAwaited(key) ? nextOwner() : undefined;
          await (next === undefined
            ? scripts.run('release', [key], mine)
            : scripts.run('transfer', [key], mine, next, life));
          fifos.leave(key, next);
        };
      },
    };
  },
};
