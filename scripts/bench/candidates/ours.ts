import { subscribe, tracingChannel } from 'node:diagnostics_channel';
import type { RedisLockRegistryOptions } from '../../../lib';
import type { NodeCandidate } from './candidate';
import { ourRegistry } from './our-registry';

type LockType = NonNullable<RedisLockRegistryOptions['lockType']>;

/** The built package with default options, or a few others, used as in the README. */
function ours(lockType: LockType, options: Partial<RedisLockRegistryOptions> = {}): NodeCandidate {
  return {
    id: lockType,
    title: `ours: ${lockType}`,
    kind: 'ours',
    packages: ['redis'],
    async open(openOptions) {
      const registry = await ourRegistry(openOptions, { lockType, ...options });
      const acquire = async (key: string) => {
        const lease = await registry.obtain(key).lock();
        return () => lease.unlock();
      };
      return {
        acquire,
        async acquireAll(keys) {
          const lease = await registry.multi(keys).lock();
          return () => lease.unlock();
        },
        keep: acquire,
        object: (key) => registry.obtain(key),
      };
    },
  };
}

/** What subscribers of all channels cost that do nothing: the messages, and the async context of each operation. */
const observed: NodeCandidate = {
  ...ours('spin'),
  id: 'observed',
  title: 'ours: spin, with subscribers',
  kind: 'observed',
  open(options) {
    const listener = () => undefined;
    const listeners = { start: listener, end: listener, asyncStart: listener, asyncEnd: listener, error: listener };
    for (const name of ['acquire', 'hold', 'release'])
      tracingChannel(`redis-lock-registry:${name}`).subscribe(listeners);
    for (const name of ['lost', 'renewed', 'warning']) subscribe(`redis-lock-registry:${name}`, listener);
    return ours('spin').open(options);
  },
};

/** Locks that one replica has. */
const replicated: NodeCandidate = {
  ...ours('spin', { minReplicas: 1 }),
  id: 'replicated',
  title: 'ours: spin, minReplicas 1',
  kind: 'replicated',
};

export const ourCandidates = [ours('spin'), observed, replicated, ours('pub-sub'), ours('fair')];
