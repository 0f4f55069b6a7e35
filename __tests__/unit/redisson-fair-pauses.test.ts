import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Hold } from '../../lib/core/hold';
import type { Released } from '../../lib/core/protocol';
import { Wait } from '../../lib/core/wait';
import { Pollers, USUAL_PACE_FOR } from '../../lib/protocols/pollers';
import { RedissonFairProtocol, type RedissonFairServices } from '../../lib/protocols/redisson/redisson-fair-protocol';
import { LockNames } from '../../lib/redis/names';
import { FakeClock } from '../support/fake-clock';
import { FakeProtocol } from '../support/fake-protocol';

const TTL = 60_000;
const TIMEOUT = 1_000;

/** ms that a holder works. */
const WORK = 500;

describe('A pause of redisson-fair', () => {
  let time: FakeClock;
  /** What the next release finds. */
  let found: Released;
  let isLeft: boolean;

  /** Its scripts, answered at once: a lock that nobody else uses. */
  const format = {
    enter: async (...args: unknown[]) => (args.at(-1) as (found: unknown) => unknown)({ granted: true }),
    release: async (
      _names: LockNames,
      _owner: string,
      toPollers: boolean,
      _timeout: number,
      use: (found: Released) => unknown,
    ) => {
      isLeft ||= toPollers;
      return use(found);
    },
  };

  beforeEach(() => {
    time = new FakeClock();
    found = 'released';
    isLeft = false;
  });

  afterEach(() => time.restore());

  it.each<Released>(['expired', 'stolen'])('goes on when an earlier owner is released late: %s', async (state) => {
    const settings = { idleBetweenTries: 100, commandTimeout: TIMEOUT, fairLockWaitTimeout: 300_000 };
    const pollers = () => new Pollers(100, USUAL_PACE_FOR);
    const services = { settings, format, pollers } as unknown as RedissonFairServices;
    const protocol = new RedissonFairProtocol(new LockNames('registry', 'key'), services);
    const acquisition = new Hold('process:1', TTL, true, undefined, time.now, new FakeProtocol());
    for (let turn = 0; !isLeft && turn < 100; turn++) {
      acquisition.stamp();
      await protocol.attempt(acquisition, TIMEOUT);
      time.now += WORK;
      await protocol.release(acquisition.ticket, TIMEOUT);
    }
    const wait = new Wait('key', 10_000, undefined);
    expect(protocol.standBack(wait)).toBeDefined();
    found = state;
    await protocol.release('process:0', TIMEOUT);
    expect(protocol.standBack(wait)).toBeDefined();
    await time.advance(10_000);
    expect(protocol.standBack(wait)).toBeUndefined();
  });
});
