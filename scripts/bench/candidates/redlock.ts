import type { NodeCandidate } from './candidate';
import { ioRedis } from './clients';
import { keepByUsing } from './keep-by-using';

export const redlock: NodeCandidate = {
  id: 'redlock',
  title: 'redlock',
  kind: 'polling',
  packages: ['redlock', 'ioredis'],
  async open({ address, ttl }) {
    const { default: Redlock } = await import('redlock');
    // Default: gives up after ten attempts.
    const locks = new Redlock([await ioRedis(address)], { retryCount: -1 });
    const acquireAll = async (keys: readonly string[]) => {
      const lock = await locks.acquire([...keys], ttl);
      return () => lock.release();
    };
    return {
      acquire: (key) => acquireAll([key]),
      acquireAll,
      keep: (key) => keepByUsing((routine) => locks.using([key], ttl, routine)),
    };
  },
};
