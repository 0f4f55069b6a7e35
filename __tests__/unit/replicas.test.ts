import { expect, it } from '@jest/globals';
import { FakeClock } from '../support/fake-clock';
import { mockRedis } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

const time = FakeClock.install();

/** A registry with minReplicas 1. `own`: its connection for acquisitions. Every command over `client` is lost. */
function replicated(acknowledged: () => Promise<number>) {
  const own = Object.assign(mockRedis(), {
    socketEpoch: 1,
    isOpen: true,
    wait: acknowledged,
    on: () => own,
    connect: async () => undefined,
    destroy: () => undefined,
  });
  const client = Object.assign(mockRedis(), { socketEpoch: 1, duplicate: () => own });
  client.evalSha.mockRejectedValue(new Error('Socket closed unexpectedly'));
  const { registry } = createRegistry(client, { minReplicas: 1, unavailableAfter: 500, commandTimeout: 500 });
  return { registry, client, own };
}

/** Resolves to the name of the error, after `ms`. */
async function errorOf(call: Promise<unknown>, ms: number): Promise<unknown> {
  const settled = call.then(() => 'none').catch(({ name }: Error) => name);
  await time.advance(ms);
  return settled;
}

it('A grant that lacks replicas and is given back without an answer is asked for again under another owner value', async () => {
  let replicas = 0;
  const { registry, own } = replicated(async () => replicas++);
  expect(await errorOf(registry.obtain('key').lock({ waitTime: 2_000 }), 2_000)).toBe('none');
  const owners = own.calls.map((options) => options?.arguments?.[0]);
  expect(owners.length).toBe(2);
  expect(new Set(owners).size).toBe(2);
});

it('A grant that lacks replicas and is given back without an answer is removed when Redis answers again', async () => {
  const { registry, client, own } = replicated(async () => 0);
  expect(await errorOf(registry.obtain('key').tryLock(), 1_000)).toBe('CannotAcquireLockError');
  const { length } = client.calls;
  client.evalSha.mockResolvedValue(1);
  await time.advance(2_000);
  const removed = client.calls.slice(length).map((options) => options?.arguments?.[0]);
  expect(removed).toContain(own.calls[0]?.arguments?.[0]);
});

it('A caller who leaves while a grant that lacks replicas is given back without an answer is told of the silence (P1)', async () => {
  const lock = replicated(async () => 0).registry.obtain('key');
  const first = errorOf(lock.lock({ waitTime: 2_000 }), 0);
  expect(await errorOf(lock.tryLock({ waitTime: 400 }), 450)).toBe('CannotAcquireLockError');
  await time.advance(2_000);
  expect(await first).toBe('CannotAcquireLockError');
});
