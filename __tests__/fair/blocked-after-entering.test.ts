import { beforeEach, expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { CLAIM_WINDOW } from '../../lib/protocols/fair/fair-scripts';
import { block } from '../support/block';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { FairFixture } from './fair-fixture';

/** The waiter is not behind a proxy, which would be blocked too. */
describePrivate('A task that blocks the event loop as soon as it was handed a fair lock', () => {
  const fixture = FairFixture.install();
  let holder: RedisLockRegistry;
  let waiter: RedisLockRegistry;

  beforeEach(async () => {
    [holder, waiter] = await Promise.all([fixture.process(), fixture.process()]);
  });

  /** The lease of such a task, whose renewal has to be on its way before. */
  const enterAndBlock = async (ms: number, beforeHandOver: () => Promise<unknown>) => {
    const { lease, waiting } = await fixture.longWait(holder, waiter);
    await beforeHandOver();
    const running = waiting.then((entered) => {
      block(ms);
      return entered;
    });
    await lease.unlock();
    const entered = await running;
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeGreaterThan(2 * CLAIM_WINDOW);
    return entered;
  };

  it.each([0.8 * CLAIM_WINDOW, 1.5 * CLAIM_WINDOW])('for %d ms keeps its lease', async (ms) => {
    await fixture.handOverOnce(holder, waiter);
    const entered = await enterAndBlock(ms, async () => undefined);
    expect(entered.signal.aborted).toBe(false);
    await until(() => entered.remaining > 2 * CLAIM_WINDOW);
    await entered.unlock();
  });

  it('keeps it also over a connection on which nothing was renewed yet, to a server that knows no script', async () => {
    const entered = await enterAndBlock(0.8 * CLAIM_WINDOW, () => fixture.admin.scriptFlush());
    await entered.unlock();
  });
});
