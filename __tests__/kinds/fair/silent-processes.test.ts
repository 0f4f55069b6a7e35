import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistry } from '../../../lib';
import { CLAIM_WINDOW } from '../../../lib/kinds/fair/scripts';
import { machineDelay } from '../../support/machine-delay';
import { describePrivate } from '../../support/private-redis';
import { until } from '../../support/until';
import { FairFixture, lock, SLACK } from './fair-fixture';
import { KEY } from './worker';

const LONG = 60_000;

describePrivate('A fair lock whose waiters and holders are killed, frozen or disconnected', () => {
  const fixture = FairFixture.install();
  let holder: RedisLockRegistry;

  beforeEach(async () => {
    holder = await fixture.process();
  });

  const taken = async (promise: Promise<Lease> | undefined) => {
    const lease = await (promise as Promise<Lease>);
    await lease.unlock();
    return performance.now();
  };

  const isListening = async ({ id }: RedisLockRegistry) =>
    (await fixture.admin.pubSubChannels(`*${fixture.registryKey}*:grants:*`)).some((name) => name.endsWith(id));

  it('A fair lock passes over a process that is reconnecting, and keeps its position', async () => {
    const [cut, other] = await Promise.all([fixture.proxied({ unavailableAfter: 60_000 }), fixture.process()]);
    const lease = await lock(holder)();
    const [first, second, third] = await fixture.enqueue([lock(cut.registry), lock(other), lock(cut.registry)]);
    // Its polls would say that it has to be found by them.
    cut.commands.requests.hold = true;
    cut.messages.refuse();
    cut.messages.reset();
    await until(async () => !(await isListening(cut.registry)));
    await lease.unlock();
    const held = await second;
    const [fourth] = await fixture.enqueue([lock(other)]);
    await cut.messages.accept();
    await until(() => isListening(cut.registry), { within: 30_000 });
    cut.commands.requests.hold = false;
    await fixture.queued(1);
    await held?.unlock();
    const [a, b, c] = [await taken(first), await taken(third), await taken(fourth)];
    expect(a).toBeLessThanOrEqual(b);
    expect(b).toBeLessThanOrEqual(c);
  });

  it('A fair lock survives the loss of all subscriptions at the moment of the release', async () => {
    const [a, b] = await Promise.all([fixture.process(), fixture.process()]);
    const lease = await lock(holder)();
    const waiting = await fixture.enqueue([lock(a), lock(b), lock(a), lock(b)]);
    const begun = performance.now();
    await Promise.all([fixture.admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']), lease.unlock()]);
    await Promise.all(waiting.map(taken));
    expect(performance.now() - begun).toBeLessThan(2 * CLAIM_WINDOW + SLACK + machineDelay());
  });

  it('A fair lock does not wait for waiters that were killed', async () => {
    const lease = await lock(holder)();
    const workers = [await fixture.workerWith(3), await fixture.workerWith(30)];
    const [mine] = await fixture.enqueue([lock(await fixture.process())]);
    for (const worker of workers) await worker.kill();
    const begun = performance.now();
    await lease.unlock();
    await taken(mine);
    expect(performance.now() - begun).toBeLessThan(CLAIM_WINDOW / 2 + machineDelay());
  });

  it('A frozen process with 100 callers in front of a fair lock, after a holder with a long life, costs one window, and few polls', async () => {
    expect(CLAIM_WINDOW).toBe(1_000); // as it is documented
    const lease = await holder.obtain(KEY).lock({ ttl: LONG });
    const frozen = await fixture.workerWith(100);
    // Waiters poll once in ten of these intervals.
    const every = { idleBetweenTries: 100 };
    const [a, b] = await Promise.all([fixture.process(every), fixture.process(every)]);
    const waiting = await fixture.enqueue([lock(a), lock(b), lock(a)]);
    frozen.freeze();
    await fixture.admin.configResetStat();
    const begun = performance.now();
    await lease.unlock();
    await sleep(0.8 * CLAIM_WINDOW);
    // The release, and one poll of each process: with Redisson's fair lock all would poll.
    expect(await fixture.scriptsRun()).toBeLessThanOrEqual(3);
    const first = (await taken(waiting[0])) - begun;
    await Promise.all(waiting.slice(1).map(taken));
    const all = performance.now() - begun;
    expect(first).toBeGreaterThan(0.9 * CLAIM_WINDOW);
    expect(all).toBeLessThan(CLAIM_WINDOW + SLACK + machineDelay());
    frozen.thaw();
    // It has lost its grant, but not its right to wait.
    expect((await frozen.next('queued')).failures).toEqual([]);
  });

  it('A fair lock detects a dead holder after its short ttl when the holder before it had a long one', async () => {
    // One polls so seldom that only a poll at the end of the key finds it.
    const [a, b] = await Promise.all([fixture.process(), fixture.process({ idleBetweenTries: 1_000 })]);
    const lease = await a.obtain(KEY).lock({ ttl: LONG });
    // The next holder is in the releasing process, so that no message is published.
    const [short, next] = await fixture.enqueue([() => a.obtain(KEY).lock({ ttl: 200 }), lock(b)]);
    await lease.unlock();
    await short; // and never gives it back
    const begun = performance.now();
    await taken(next);
    expect(performance.now() - begun).toBeLessThan(200 + SLACK + machineDelay());
    await a.obtain(KEY).lock({ ttl: 1_000 }); // and never gives it back
    const called = performance.now();
    await taken(lock(b)());
    expect(performance.now() - called).toBeLessThan(1_000 + SLACK + machineDelay());
  });
});
