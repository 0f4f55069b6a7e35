import type { NodeCandidate } from './candidate';

export const nodeRedisson: NodeCandidate = {
  id: 'node-redisson',
  title: 'node-redisson',
  kind: 'notified',
  isVariant: true,
  packages: ['node-redisson', 'ioredis'],
  async open({ address, ttl }) {
    const { Redisson } = await import('node-redisson');
    const redisson = new Redisson({ redis: { options: { ...address } }, lockWatchdogTimeout: BigInt(ttl) });
    const acquire = async (key: string) => {
      const lock = redisson.getLock(key);
      await lock.lock();
      return () => lock.unlock();
    };
    return { acquire, keep: acquire, object: (key) => redisson.getLock(key) };
  },
};
