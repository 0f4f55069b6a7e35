import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { reliableUntil } from '../../lib/internal/clock';
import { FakeClock } from '../support/fake-clock';
import { WatchdogFixture } from '../support/watchdog-fixture';

let time: FakeClock;
let fixture: WatchdogFixture;

beforeEach(() => {
  time = new FakeClock();
  fixture = new WatchdogFixture();
});

afterEach(() => {
  fixture.watchdog.close();
  time.restore();
});

describe('A lease that was granted for a claim window', () => {
  it('ends with the window unless its first renewal is confirmed (P4)', async () => {
    const since = time.now;
    const window = 1_000;
    const unanswered = fixture.lease(9_000, { firstRenewal: { window, answer: new Promise(() => {}) } });
    const held = { state: 'held', until: reliableUntil(since, 9_000) } as const;
    const fixed = fixture.lease(9_000, { renewFor: 0, firstRenewal: { window, answer: Promise.resolve(held) } });
    await time.advance(1_100);
    expect([unanswered.isHeld, unanswered.lossReason]).toEqual([false, 'unconfirmed']);
    expect((unanswered.lostAt as number) - since).toBeLessThanOrEqual(window);
    expect(fixed.isHeld).toBe(true);
    await time.advance(10_000);
    expect(fixed.lossReason).toBe('expired');
    expect((fixed.lostAt as number) - since).toBeCloseTo(reliableUntil(0, 9_000), -1);
  });

  it('has a first renewal without an answer repeated, also if it is not to be renewed otherwise', async () => {
    const unknown = { state: 'unknown', cause: new Error('trouble') } as const;
    const firstRenewal = { window: 1_000, answer: Promise.resolve(unknown) };
    const lease = fixture.lease(9_000, { renewFor: Number.NEGATIVE_INFINITY, firstRenewal });
    await time.advance(3_000);
    expect(lease.isHeld).toBe(true);
    expect(fixture.protocol.requests).toMatchObject([{ owners: [lease.owner], modes: ['extend'] }]);
    await time.advance(10_000);
    expect(lease.lossReason).toBe('expired');
  });
});
