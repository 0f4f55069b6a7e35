import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { createClient, createClientPool, createCluster, createSentinel } from 'redis';
import { type RedisClient, RedisLockRegistry } from '../../lib';
import { untilCollected } from '../support/collected';
import { DISTINCT_TYPES } from '../support/lock-types';

/** From the eleventh listener on, Node warns of a leak. */
const REGISTRIES = 12;

const root = { host: '127.0.0.1', port: 1 };

/** Clients that are not connected. */
const clients: Record<string, () => unknown> = {
  client: () => createClient(),
  pool: () => createClientPool(),
  cluster: () => createCluster({ rootNodes: [{ socket: root }] }),
  sentinel: () => createSentinel({ name: 'locks', sentinelRootNodes: [root] }),
};

describe.each(DISTINCT_TYPES)(`${REGISTRIES} registries of %s locks`, (lockType) => {
  it.each(Object.keys(clients))(
    `${REGISTRIES} registries of locks on one %s cause no MaxListenersExceededWarning`,
    async (kind) => {
      const client = (clients[kind] as () => EventEmitter)();
      const most = client.getMaxListeners();
      const registries = Array.from({ length: REGISTRIES }, (_, i) => {
        return new RedisLockRegistry(client as unknown as RedisClient, { registryKey: `registry-${i}`, lockType });
      });
      for (const event of client.eventNames()) expect(client.listenerCount(event)).toBeLessThanOrEqual(most);
      expect(client.getMaxListeners()).toBe(most);
      await Promise.all(registries.map((registry) => registry.close({ timeout: 0 })));
    },
  );
});

/** A client whose connections for messages and replicas are mocks. Mocks of jest would keep what they were called with. */
function livingOn() {
  const refusals: unknown[] = [];
  const duplicate = () =>
    Object.assign(new EventEmitter(), {
      ...{ eval: async () => 1, evalSha: async (): Promise<unknown> => refusals.shift() ?? 1, wait: async () => 1 },
      ...{ connect: async () => undefined, subscribe: async () => undefined, unsubscribe: async () => undefined },
      ...{ destroy: () => undefined, isOpen: true, isReady: true, socketEpoch: 1 },
    });
  return Object.assign(duplicate(), { refusals, duplicate });
}

it.each(['spin', ...DISTINCT_TYPES] as const)(
  'A registry of %s locks that is closed is kept by nothing: not by its client, which lives on, nor by a signal',
  async (lockType) => {
    const client = livingOn();
    const { signal } = new AbortController();
    const other = new RedisLockRegistry(client, { registryKey: 'other' });
    const used = async () => {
      // Every part of a registry knows it.
      const onWarning = () => undefined;
      const registry = new RedisLockRegistry(client, { registryKey: 'r', lockType, minReplicas: 1, onWarning });
      client.refusals.push(lockType === 'fair' ? [9_000, '7', '', '', 'another:1'] : [9_000, 'another:1', 0]);
      await registry
        .obtain('taken')
        .lock({ waitTime: 50, signal })
        .catch(() => undefined);
      await registry.lead('key', () => registry.obtain('key').run(() => undefined), { signal });
      await registry.multi(['a', 'b']).run(({ signal: ofLease }) => ofLease.throwIfAborted(), { signal });
      await registry.close({ timeout: 0 });
      return new WeakRef(onWarning);
    };
    await untilCollected(await used());
    await other.close({ timeout: 0 });
  },
);
