import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistry } from '../../lib';
import { HAND_OVER, RELEASE } from '../../lib/protocols/fair/fair-release-scripts';
import { ACQUIRE, CLAIM_WINDOW, POLL, RENEW_GRANT } from '../../lib/protocols/fair/fair-scripts';

import type { LockScript } from '../../lib/redis/script';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { FairFixture, lock, type ProxiedProcess, SLACK } from './fair-fixture';
import { KEY } from './worker';

describePrivate('A fair lock whose replies are lost', () => {
  const fixture = FairFixture.install();
  let other: RedisLockRegistry;
  let cut: ProxiedProcess;

  beforeAll(async () => {
    // The server knows every script: what is lost is named by its hash.
    await fixture.handOverOnce(await fixture.process(), await fixture.process());
  });

  beforeEach(async () => {
    [other, cut] = await Promise.all([fixture.process(), fixture.proxied()]);
  });

  /** Whether it is sent by its hash or as text, alone or with others. */
  const lose = ({ sha1, source, forMany }: LockScript) =>
    Promise.race([sha1, source.slice(-100), forMany.sha1].map((match) => cut.commands.loseReply(match)));

  const leaves = async (lease: Lease | undefined) => {
    await lease?.unlock();
    await until(async () => (await fixture.keys()).length === 0, { within: 2 * CLAIM_WINDOW });
  };

  it('ACQUIRE of a free lock: it is ours, with the token that it was given', async () => {
    const lost = lose(ACQUIRE);
    const lease = await cut.registry.obtain(KEY).lock();
    await lost;
    expect(lease.fencingToken).toBe(Number(await fixture.admin.get(fixture.names.companion('fence'))));
    await leaves(lease);
  });

  it('ACQUIRE of a held lock: one ticket, in the position of its first arrival', async () => {
    const held = await lock(other)();
    const lost = lose(ACQUIRE);
    const first = cut.registry.obtain(KEY).lock();
    await lost;
    const second = other.obtain(KEY).lock();
    await fixture.queued(2, 'any');
    await held.unlock();
    const lease = await first;
    await lease.unlock();
    await leaves(await second);
  });

  it('RELEASE of a holder whose next is in another process: it was released', async () => {
    const held = await lock(cut.registry)();
    const [next] = await fixture.enqueue([lock(other)]);
    const lost = lose(RELEASE);
    const begun = performance.now();
    await Promise.all([held.unlock(), lost]);
    const lease = await next;
    expect(performance.now() - begun).toBeLessThan(SLACK + machineDelay());
    await leaves(lease);
  });

  it('RELEASE of a holder whose next is in the same process: the next finds that the lock is its own', async () => {
    const held = await lock(cut.registry)();
    const [next, last] = await fixture.enqueue([lock(cut.registry), lock(other)]);
    const lost = lose(RELEASE);
    const begun = performance.now();
    await Promise.all([held.unlock(), lost]);
    const lease = await next;
    expect(performance.now() - begun).toBeLessThan(CLAIM_WINDOW + SLACK + machineDelay());
    await lease?.unlock();
    await leaves(await last);
  });

  it('RELEASE of a waiter that gave up: no ticket stays', async () => {
    const held = await lock(other)();
    const aborting = new AbortController();
    const [waiting] = await fixture.enqueue([() => cut.registry.obtain(KEY).lock({ signal: aborting.signal })]);
    const rejected = expect(waiting).rejects.toBe('aborted');
    const lost = lose(RELEASE);
    aborting.abort('aborted');
    await Promise.all([rejected, lost]);
    await until(async () => (await fixture.admin.zCard(fixture.queue)) === 0);
    await leaves(held);
  });

  it('RENEW_GRANT of a grant by hand-over: the lease lives on one that is repeated', async () => {
    const held = await lock(other)();
    const [waiting] = await fixture.enqueue([lock(cut.registry)]);
    const lost = lose(RENEW_GRANT);
    await held.unlock();
    const lease = await waiting;
    await lost;
    await until(() => (lease?.remaining ?? 0) > 2 * CLAIM_WINDOW);
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeGreaterThan(2 * CLAIM_WINDOW);
    await leaves(lease);
  });

  it('any of them, at any moment: every caller has its turn, and nothing stays', async () => {
    const scripts = [ACQUIRE, RELEASE, RENEW_GRANT, POLL];
    const begun = performance.now();
    let inside = 0;
    let turns = 0;
    const caller = async (registry: RedisLockRegistry) => {
      for (let i = 0; i < 15; i++) {
        await registry.run(KEY, async () => {
          expect(++inside).toBe(1);
          await new Promise(setImmediate);
          inside--;
          turns++;
        });
      }
    };
    let over = false;
    const losing = (async () => {
      for (let i = 0; !over; i++) {
        await Promise.race([lose(scripts[i % 4] as LockScript), until(() => over, { within: 30_000 })]);
      }
    })();
    await Promise.all([cut.registry, cut.registry, other, other].map(caller));
    over = true;
    await losing;
    expect(turns).toBe(60);
    expect(performance.now() - begun).toBeLessThan(10_000 + machineDelay());
    await leaves(undefined);
  });
});
