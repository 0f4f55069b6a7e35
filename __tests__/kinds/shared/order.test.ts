import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { DistributedLock, LockOptions } from '../../../lib';
import type { BackedLockRegistry } from '../../../lib/registry/backed-lock-registry';
import { describeReal } from '../../support/redis';
import { untilQuiet } from '../../support/server-load';
import { until } from '../../support/until';
import { type Pair, pairsInMemory, queued, SharedFixture } from './shared-fixture';

/** ms; calls that are further apart than a message takes have an order, though the machine is busy. */
const APART = 250;

/** ms; longer than a process passes on what it has. */
const WORK = 70;

/** Takes the lock, before a poll could find it free, notes that, and gives it back after `WORK`. */
async function enter(lock: DistributedLock, name: string, order: string[], options: LockOptions = {}): Promise<void> {
  const lease = await lock.lock({ waitTime: 20_000, ...options });
  order.push(name);
  await sleep(WORK);
  await lease.unlock();
}

/** What holds wherever the locks are. */
function orderOfCalls(pair: () => Promise<Pair>): void {
  it.each<[string, (registry: BackedLockRegistry) => DistributedLock]>([
    ['A semaphore', (registry) => registry.semaphore('key', { permits: 1 })],
    ['A lock for writing', (registry) => registry.readWrite('key').write],
  ])('%s serves the callers of all processes in the order of their calls', async (_name, lockOf) => {
    const [here, there] = (await pair()).map(lockOf) as [DistributedLock, DistributedLock];
    const order: string[] = [];
    const held = await here.lock();
    const calls: Promise<void>[] = [];
    for (const [lock, name] of [
      [here, 'first'],
      [here, 'second'],
      [there, 'third'],
      [here, 'fourth'],
      [there, 'fifth'],
    ] as const) {
      calls.push(enter(lock, name, order));
      await sleep(APART);
      // Only the first call of the other process is sure to reach the queue.
      if (name === 'third') await queued(there, 1);
    }
    await held.unlock();
    await Promise.all(calls);
    expect(order).toEqual(['first', 'second', 'third', 'fourth', 'fifth']);
  });

  it.each(['is unlocked', 'ends by its ttl'])(
    'Readers that wait come before a writer that called earlier, when the lease of a writer %s',
    async (ends) => {
      const [one, other] = await pair();
      const [here, there] = [one.readWrite('key'), other.readWrite('key')];
      const order: string[] = [];
      const writing = await here.write.lock({ ttl: ends === 'is unlocked' ? 60_000 : 5 * APART });
      const later = enter(there.write, 'writer', order);
      await queued(there.write, 1);
      const reading = [here, there].map(({ read }) => enter(read, 'reader', order));
      await queued(there.read, 3);
      if (ends === 'is unlocked') await writing.unlock();
      await Promise.all([later, ...reading]);
      expect(order).toEqual(['reader', 'reader', 'writer']);
    },
  );

  it('A reader whose lease ends by its ttl does not harm another one in its process, which unlocks when it hears of that', async () => {
    const [registry] = await pair();
    const { read, write } = registry.readWrite('key');
    const [long, short] = [await read.lock({ ttl: 60_000 }), await read.lock({ ttl: APART })];
    const unlocking = new Promise<void>((resolve, reject) => {
      short.signal.addEventListener('abort', () => void long.unlock().then(resolve, reject));
    });
    await unlocking;
    await expect(short.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
    expect(await write.tryRun(() => 'entered', { waitTime: 5_000 })).toMatchObject({ ran: true });
  });

  it('A reader that waited in its process comes before a writer that called later', async () => {
    const [one, other] = await pair();
    const [here, there] = [one.readWrite('key'), other.readWrite('key')];
    const order: string[] = [];
    const writing = await there.write.lock();
    // The hold of the first reader does not last long enough for the second one.
    const reading = [
      enter(here.read, 'short', order, { ttl: 2_000 }),
      enter(here.read, 'long', order, { ttl: 60_000 }),
    ];
    await queued(here.read, 1);
    await sleep(APART);
    const later = enter(there.write, 'writer', order);
    await sleep(APART);
    await writing.unlock();
    await Promise.all([...reading, later]);
    expect(order).toEqual(['short', 'long', 'writer']);
  });
}

describeReal('Shared locks in Redis', () => {
  const fixture = SharedFixture.install();
  const pair = () => fixture.pair({ idleBetweenTries: 5_000 }); // a poll every 50 s
  orderOfCalls(pair);

  it('Shared locks in Redis let in the first caller when the one that was asked to come turns out to stand behind it', async () => {
    const [one, other] = await pair();
    const order: string[] = [];
    const [here, there] = [one, other].map((registry) => registry.semaphore('key', { permits: 1 })) as [
      DistributedLock,
      DistributedLock,
    ];
    const held = await (await fixture.registry()).semaphore('key', { permits: 1 }).lock();
    const first = enter(here, 'first', order);
    await queued(here, 1);
    const channel = fixture.channel('key');
    const waiters = `{${fixture.registryKey}:key}:waiters`;
    const [before] = (await fixture.client.hKeys(waiters)).filter((field) => field !== 'permits');
    await sleep(APART);
    const second = enter(there, 'second', order);
    await queued(here, 2);
    await until(async () => (await fixture.client.pubSubNumSub(channel))[channel] === 2);
    await untilQuiet(fixture.client); // after the attempts that follow the subscriptions
    const tickets = (await fixture.client.hKeys(waiters)).filter((field) => field !== 'permits');
    const ticket = tickets.find((field) => field !== before) as string;
    // The position of a caller before it, which it took over and has not said yet that it called later.
    const position = (await fixture.client.hGet(waiters, ticket)) as string;
    await fixture.client.hSet(waiters, ticket, position.replace(/^\d+/, '1'));
    await held.unlock();
    await Promise.all([first, second]);
    expect(order).toEqual(['first', 'second']);
  });
});

describe('Shared locks in memory', () => {
  const pair = pairsInMemory();
  orderOfCalls(async () => pair());
});
