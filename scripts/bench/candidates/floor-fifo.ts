import type { NodeCandidate } from './candidate';
import { rawNodeRedis } from './clients';
import { LocalQueues } from './local-queues';
import { nextOwner, RawScripts } from './raw-scripts';

/**
 * Contended: a FIFO queue in each process; its first caller retries SET NX PX when a release is published. No deadline,
 * no fairness between processes, no poll that would make up for a lost message.
 */
export const floorFifo: NodeCandidate = {
  id: 'floor-fifo',
  title: 'floor: FIFO, SET NX PX + EVALSHA, PUBLISH',
  kind: 'floor',
  packages: ['redis'],
  async open({ address, ttl }) {
    const client = await rawNodeRedis(address);
    const scripts = await RawScripts.load(client, 'releaseAndPublish');
    const options = { condition: 'NX', expiration: { type: 'PX', value: ttl } } as const;
    const queues = new LocalQueues<undefined>();
    const subscriber = await client.newSubscriber();
    const subscribed = new Map<string, Promise<void>>();
    const wake = new Map<string, () => void>();
    const subscribe = (key: string) => {
      const subscription = subscribed.get(key) ?? subscriber.subscribe(key, () => wake.get(key)?.());
      subscribed.set(key, subscription);
      return subscription;
    };
    return {
      async acquire(key) {
        await queues.enter(key);
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
          await scripts.run('releaseAndPublish', [key], owner);
          queues.leave(key);
        };
      },
    };
  },
};
