import type { Candidate } from './candidate';
import { rawNodeRedis } from './clients';
import { Fifos } from './fifo';
import { nextOwner, RawScripts } from './raw-scripts';

/**
 * Contention: a FIFO in each process, whose first tries SET NX PX again at every message of a release. No deadline, no
 * fairness between processes, no second look for a message that was lost.
 */
export const floorFifo: Candidate = {
  id: 'floor-fifo',
  title: 'floor: FIFO, SET NX PX + EVALSHA, PUBLISH',
  kind: 'floor',
  packages: ['redis'],
  async open({ address, ttl }) {
    const client = await rawNodeRedis(address);
    const scripts = await RawScripts.load(client, 'releaseAndTell');
    const options = { condition: 'NX', expiration: { type: 'PX', value: ttl } } as const;
    const fifos = new Fifos<undefined>();
    const subscriber = await client.tap();
    const subscribed = new Map<string, Promise<void>>();
    const wake = new Map<string, () => void>();
    const subscribe = (key: string) => {
      const subscription = subscribed.get(key) ?? subscriber.subscribe(key, () => wake.get(key)?.());
      subscribed.set(key, subscription);
      return subscription;
    };
    return {
      async acquire(key) {
        await fifos.enter(key);
        const owner = nextOwner();
        if ((await client.set(key, owner, options)) === null) {
          await subscribe(key);
          for (;;) {
            const released = new Promise<void>((resolve) => wake.set(key, resolve));
            if ((await client.set(key, owner, options)) !== null) break;
            await released;
          }
        }
        return async () => {
          await scripts.run('releaseAndTell', [key], owner);
          fifos.leave(key);
        };
      },
    };
  },
};
