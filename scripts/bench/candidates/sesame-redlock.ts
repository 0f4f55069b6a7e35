import type { NodeCandidate } from './candidate';
import { ioRedis } from './clients';
import { keepByUsing } from './keep-by-using';

export const sesameRedlock: NodeCandidate = {
  id: 'sesame-redlock',
  title: '@sesamecare-oss/redlock',
  kind: 'polling',
  isVariant: true,
  packages: ['@sesamecare-oss/redlock', 'ioredis'],
  async open({ address, ttl }) {
    const { Redlock } = await import('@sesamecare-oss/redlock');
    // Default: gives up after ten attempts. With -1 it allocates an object for every attempt.
    const locks = new Redlock([await ioRedis(address)], { retryCount: Number.MAX_SAFE_INTEGER });
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
