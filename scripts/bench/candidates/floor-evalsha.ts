import type { NodeCandidate } from './candidate';
import { rawNodeRedis } from './clients';
import { nextOwner, RawScripts } from './raw-scripts';

/** Acquires by script, as a library must to recognise its own earlier attempt. */
export const floorEvalSha: NodeCandidate = {
  id: 'floor-evalsha',
  title: 'floor: EVALSHA + EVALSHA',
  kind: 'floor',
  packages: ['redis'],
  async open({ address, ttl }) {
    const scripts = await RawScripts.load(
      await rawNodeRedis(address),
      'acquire',
      'release',
      'acquireAll',
      'releaseAll',
    );
    const ttlArgument = String(ttl);
    return {
      async acquire(key) {
        const owner = nextOwner();
        await scripts.run('acquire', [key], owner, ttlArgument);
        return () => scripts.run('release', [key], owner);
      },
      async acquireAll(keys) {
        const owner = nextOwner();
        await scripts.run('acquireAll', [...keys], owner, ttlArgument);
        return () => scripts.run('releaseAll', [...keys], owner);
      },
    };
  },
};
