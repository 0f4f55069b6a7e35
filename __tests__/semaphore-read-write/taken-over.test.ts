import { EventEmitter } from 'node:events';
import { expect, it } from '@jest/globals';
import { type DistributedLock, type LockOptions, RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, queuedUntilLetIn } from '../support/mock-redis';

const time = FakeClock.install();

/** A semaphore in a Redis that lets the first caller in, and no other one. */
function semaphoreOfOne() {
  /** Each with the owner values of its attempts. */
  const tickets: string[][] = [];
  const released: string[] = [];
  const client = Object.assign(new EventEmitter(), mockRedis());
  client.evalSha.mockImplementation(async (_sha, options) => {
    const { 1: owner = '', 12: earlier } = options?.arguments ?? [];
    if (earlier !== undefined) {
      const ticket = tickets.find((owners) => owners.includes(earlier));
      if (ticket === undefined) tickets.push([owner]);
      else ticket.push(owner);
      return tickets.length === 1 ? [0, 0, 1] : queuedUntilLetIn(20_000, '');
    }
    released.push(owner);
    return [0, 0];
  });
  const registry = new RedisLockRegistry(client, { registryKey: 'taken-over', onWarning: () => undefined });
  return { semaphore: registry.semaphore('key', { permits: 1 }), tickets, released, client };
}

/** The first caller gives its permit to the second one, which waits in the queue. The third one is next there. */
async function passOn(semaphore: DistributedLock, third: LockOptions): Promise<void> {
  const first = await semaphore.lock();
  const second = semaphore.lock();
  await time.advance(1);
  semaphore.lock(third).catch(() => undefined);
  await first.unlock();
  await second;
  await time.advance(1);
}

it('The position in the queue of a caller that gets a permit from its own process is for the next caller, which asks for the same', async () => {
  const { semaphore, tickets, released } = semaphoreOfOne();
  await passOn(semaphore, {});
  await time.advance(1_000); // a poll
  expect(tickets.length).toBe(2);
  expect(released).toEqual([]);
});

it.each<LockOptions>([{ minHold: 500 }, { ttl: 70_000, renew: true }])(
  'The position in the queue of a caller that gets a permit from its own process is given back where the next caller asks for something else: %j',
  async (options) => {
    const { semaphore, tickets, released } = semaphoreOfOne();
    await passOn(semaphore, options);
    expect(tickets.length).toBe(3);
    expect(released).toEqual([tickets[1]?.at(-1)]);
  },
);

it('The position in the queue of a caller that gets a permit from its own process is given back once by a next caller that gives up, though a connection was lost before all that', async () => {
  const { semaphore, tickets, released, client } = semaphoreOfOne();
  client.emit('client-error');
  const stop = new AbortController();
  await passOn(semaphore, { signal: stop.signal });
  stop.abort();
  await time.advance(5_000);
  expect(released).toEqual([tickets[1]?.at(-1)]);
});
