import { afterEach, beforeEach, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { clock } from '../../lib/internal/clock';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { run, schedules } from './schedules/schedule';
import { ScheduleFixture } from './schedules/schedule-fixture';
import { TTL } from './schedules/settings';

const SCHEDULES = 100;
const AT_ONCE = 5;

const real = { ...clock };
const timers = new Set<NodeJS.Timeout>();

beforeEach(() => {
  clock.setTimeout = (callback, ms) => {
    const handle = real.setTimeout(() => {
      timers.delete(handle);
      callback();
    }, ms);
    timers.add(handle);
    return handle;
  };
  clock.clearTimeout = (handle) => {
    if (handle !== undefined) timers.delete(handle);
    real.clearTimeout(handle);
  };
});

afterEach(() => {
  Object.assign(clock, real);
});

describePrivate('random schedules of work and faults', () => {
  it(`P1 P2 P3 P7 P8 P10: ${SCHEDULES} of them: no overlap, rising tokens, no key and no timer left`, async () => {
    const outcomes = await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        const fixture = await ScheduleFixture.open();
        let keys = 0;
        let leases = 0;
        await fc.assert(
          fc.asyncProperty(schedules, async (steps) => {
            const violations = await run(fixture, `key-${++keys}`, steps);
            leases += fixture.ledger.size;
            expect(violations).toEqual([]);
          }),
          // No shrinking: a shorter schedule has another timing and would not fail in the same way.
          { numRuns: SCHEDULES / AT_ONCE, endOnFailure: true },
        );
        await fixture.killProcess();
        await fixture.close();
        const left = await fixture.admin.keys('*');
        return { leases, left: left.filter((name) => !name.endsWith(':fence')) };
      }),
    );
    expect(outcomes.flatMap(({ left }) => left)).toEqual([]);
    // Without leases the schedules prove nothing.
    expect(outcomes.reduce((sum, { leases }) => sum + leases, 0)).toBeGreaterThan(SCHEDULES);
    await until(() => timers.size === 0, { within: 4 * TTL });
  }, 300_000);
});
