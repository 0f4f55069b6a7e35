import type { RedisClient } from '../../lib';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import type { ClientKind } from './client-kinds';

/** Stands for a way to the locks, so that a spy can count what goes over it. */
function way(): RedisClient {
  return { eval: async () => 1, evalSha: async () => 1 };
}

/** The same locks; each request is also made to `client`, where it is counted. */
function locksOver(client: RedisClient, locks: InMemoryLocks): InMemoryLocks {
  return new Proxy(locks, {
    get(target, property) {
      if (property === 'send') {
        return (...request: Parameters<InMemoryLocks['send']>) => {
          void client.evalSha('', { keys: [] });
          return target.send(...request);
        };
      }
      const value = Reflect.get(target, property, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Locks in memory. The oracle of the contract is in a real Redis. */
export const inMemory: ClientKind = (() => {
  const locks = new InMemoryLocks();
  return {
    name: 'an in-memory registry',
    server: 'real',
    requestsOfWaiter: 1,
    hasNoScripts: true,
    registry(client, { idleBetweenTries: _, ...options }) {
      return new InMemoryLockRegistry({ ...options, locks: locksOver(client, locks) });
    },
    async open() {
      return {
        clients: [way(), way()],
        admin: {
          exists: async (name) => Number(locks.find(name).state.owner !== undefined),
          pTTL: async (name) => Math.round(locks.find(name).state.remaining),
          set: async (name, value, { PX } = { PX: 60_000 }) => locks.find(name).give(value, PX),
          del: async (name) => locks.find(name).free(),
          forgetScripts: async () => undefined,
        },
        close: async () => undefined,
      };
    },
  };
})();
