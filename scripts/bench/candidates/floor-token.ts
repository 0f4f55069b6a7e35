import type { NodeCandidate, Release } from './candidate';
import { rawNodeRedis } from './clients';
import { nextOwner, RawScripts } from './raw-scripts';

/**
 * A token that is passed on in the order of requests, over all processes: two requests and at most one message for each
 * acquisition. A lost message or a dead process would stop it.
 */
export const floorToken: NodeCandidate = {
  id: 'floor-token',
  title: 'floor: FIFO over all processes, a token',
  kind: 'floor',
  packages: ['redis'],
  async open({ address, ttl }) {
    const client = await rawNodeRedis(address);
    const scripts = await RawScripts.load(client, 'takeOrQueue', 'handOverToFirst');
    const ttlArgument = String(ttl);
    const waiting = new Map<string, () => void>();
    const grant = (owner: string) => {
      waiting.get(owner)?.();
      waiting.delete(owner);
    };
    const subscriber = await client.newSubscriber();
    await subscriber.subscribe(`token:${process.pid}`, grant);
    return {
      async acquire(key): Promise<Release> {
        const owner = nextOwner();
        const keys = [key, `${key}:queue`];
        // Before the request: the message may come before its reply.
        const granted = new Promise<void>((resolve) => waiting.set(owner, resolve));
        if ((await scripts.run('takeOrQueue', keys, owner, ttlArgument)) === 1) grant(owner);
        await granted;
        return async () => grant(String(await scripts.run('handOverToFirst', keys, owner, ttlArgument)));
      },
    };
  },
};
