import type { Locks, NodeCandidate, OpenOptions } from './candidate';
import { rawNodeRedis } from './clients';
import { nextOwner, RawScripts } from './raw-scripts';

const KEYS_PER_RENEWAL = 100;

/** Uncontended, without a queue: SET NX PX, and a script that deletes the key if it is ours. */
export const floor: NodeCandidate = {
  id: 'floor',
  title: 'floor: SET NX PX + EVALSHA',
  kind: 'floor',
  packages: ['redis'],
  async open({ address, ttl }: OpenOptions): Promise<Locks> {
    const client = await rawNodeRedis(address);
    const scripts = await RawScripts.load(client, 'release', 'renew');
    const options = { condition: 'NX', expiration: { type: 'PX', value: ttl } } as const;
    const held = new Map<string, string>();

    const renew = async () => {
      const entries = [...held];
      for (let i = 0; i < entries.length; i += KEYS_PER_RENEWAL) {
        const batch = entries.slice(i, i + KEYS_PER_RENEWAL);
        const keys = batch.map(([key]) => key);
        await scripts.run('renew', keys, String(ttl), ...batch.map(([, owner]) => owner));
      }
    };
    const acquire = async (key: string) => {
      const owner = nextOwner();
      await client.set(key, owner, options);
      return { owner, release: () => scripts.run('release', [key], owner) };
    };
    let isRenewing = false;
    return {
      acquire: async (key) => (await acquire(key)).release,
      async keep(key) {
        if (!isRenewing) setInterval(() => void renew(), ttl / 3);
        isRenewing = true;
        const { owner, release } = await acquire(key);
        held.set(key, owner);
        return release;
      },
    };
  },
};
