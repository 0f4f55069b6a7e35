import { beforeEach, describe, expect, it } from '@jest/globals';
import { Hold } from '../../lib/core/hold';
import { Wait } from '../../lib/core/wait';
import { RedissonFormat } from '../../lib/protocols/redisson/redisson';
import { RedissonFairProtocol, type RedissonFairServices } from '../../lib/protocols/redisson/redisson-fair';
import { ACQUIRE, LEAVE } from '../../lib/protocols/redisson/redisson-fair-scripts';
import { Pollers, USUAL_PACE_FOR } from '../../lib/protocols/shared-with-pollers';
import type { Connection } from '../../lib/redis/connection';
import { LockNames } from '../../lib/redis/names';
import type { Redis } from '../../lib/redis/redis';
import type { Script } from '../../lib/redis/script';
import { FakeClock } from '../support/fake-clock';

const TTL = 60_000;
const TIMEOUT = 1_000;

/** ms that a holder works. */
const WORK = 500;

describe('A pause of redisson-fair', () => {
  const time = FakeClock.install();
  /** What the next release finds: 1 its key, 0 no key, -1 the key of another owner. */
  let found: number;
  let isLeft: boolean;

  /** Its scripts, answered at once: a lock that nobody else uses. */
  const redis = {
    isCluster: false,
    run: async (
      script: Script,
      _keys: string[],
      _args: string[],
      _timeout: number,
      read: (reply: unknown) => unknown,
    ) => {
      isLeft ||= script === LEAVE;
      return read(script === ACQUIRE ? 1 : found);
    },
  } as unknown as Redis;

  beforeEach(() => {
    found = 1;
    isLeft = false;
  });

  it.each([
    ['expired', 0],
    ['stolen', -1],
  ])('A pause of redisson-fair goes on when an earlier owner is released late: %s', async (_state, state) => {
    const settings = { idleBetweenTries: 100, commandTimeout: TIMEOUT, fairLockWaitTimeout: 300_000, fencing: false };
    const parts = { redis, settings, pollers: () => new Pollers(100, USUAL_PACE_FOR) };
    const services = { parts, format: new RedissonFormat(redis, settings as never) } as unknown as RedissonFairServices;
    const protocol = new RedissonFairProtocol(new LockNames('registry', 'key'), services);
    const acquisition = new Hold(
      'process:1',
      { ttl: TTL, minHold: 0, permits: 1, waits: true },
      {} as Connection,
      protocol,
    );
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
