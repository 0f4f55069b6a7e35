import type { NodeCandidate } from './candidate';
import { nodeRedis } from './clients';
import { keepByUsing } from './keep-by-using';

export const redlockUniversal: NodeCandidate = {
  id: 'redlock-universal',
  title: 'redlock-universal',
  kind: 'polling',
  isVariant: true,
  packages: ['redlock-universal', 'redis'],
  async open({ address, ttl }) {
    const { createLock, LockManager, NodeRedisAdapter } = await import('redlock-universal');
    const adapter = new NodeRedisAdapter(await nodeRedis(address));
    // Default: gives up after three attempts.
    const object = (key: string) => createLock({ adapter, key, ttl, retryAttempts: Number.MAX_SAFE_INTEGER });
    const manager = new LockManager({
      nodes: [adapter],
      defaultTTL: ttl,
      defaultRetryAttempts: Number.MAX_SAFE_INTEGER,
    });
    const locks = new Map<string, ReturnType<typeof object>>();
    const lockOf = (key: string) => {
      const lock = locks.get(key) ?? object(key);
      locks.set(key, lock);
      return lock;
    };
    return {
      async acquire(key) {
        const lock = lockOf(key);
        const handle = await lock.acquire();
        return () => lock.release(handle);
      },
      async acquireAll(keys) {
        const handles = await manager.acquireBatch([...keys]);
        return () => manager.releaseBatch(handles);
      },
      keep: (key) => keepByUsing((routine) => lockOf(key).using(routine)),
      object,
    };
  },
};
