import type { Redis } from '../redis/client';
import type { LockNames } from '../redis/names';
import { LockScript } from '../redis/script';
import type { StrategySettings } from './index';
import { PubSubStrategy } from './pub-sub';
import { CHANNEL, HOLD, MINT, REDISSON_WATCHDOG_TIMEOUT, RENEW, TELL, TOKEN, UNLOCKED, WHOSE } from './redisson-hash';
import { deleteBy, isFound, type KeyScripts } from './string-key';

/**
 * KEYS lock [, token]; ARGV owner, ttl in ms.
 * Returns 1 when the lock is the owner's, with a token key its token; else { life of the holder's key in ms }.
 */
const OBTAIN = new LockScript(`${MINT}${HOLD}
if redis.call('EXISTS', KEYS[1]) == 0 then
  hold(ARGV[1], ARGV[2])
  return mint(2)
end
-- Not by pcall: a key of another type is nothing that waiting mends.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return { redis.call('PTTL', KEYS[1]) } end
prolong(ARGV[2])
return mint(2, true)`);

/**
 * KEYS lock; ARGV owner, command that deletes, PUBLISH or SPUBLISH, channel.
 * Returns 1 or 2 deleted (2: by DEL, since the command is not to be had); 0 nobody's; -1 another owner's.
 */
const RELEASE = new LockScript(
  `${WHOSE}${TELL}
local found = whose(KEYS[1], ARGV[1])
if found ~= 1 then return found end
${deleteBy('ARGV[2]')}
tell(ARGV[3], ARGV[4])
return deleted`,
  isFound,
);

/**
 * KEYS lock [, token]; ARGV owner, next owner, ttl in ms, listeners of our own or -1, command that deletes,
 * PUBLISH or SPUBLISH, channel. With -1 the lock is handed over in any case; else it is given up when others than
 * ourselves listen.
 * Returns 1 or the token when it is the next owner's; { 1 or 2 deleted, listeners of others }; { 0 } nobody's;
 * { -1 } another owner's.
 */
const TRANSFER = new LockScript(`${WHOSE}${MINT}${HOLD}${TELL}
local found = whose(KEYS[1], ARGV[1])
if type(found) == 'table' then return found end
if found < 1 then
  if whose(KEYS[1], ARGV[2]) == 1 then return mint(2, true) end
  return { found }
end
local own = tonumber(ARGV[4])
if own >= 0 then
  local heard = tell(ARGV[6], ARGV[7])
  local others = heard and heard - own or 1
  if others > 0 then
    ${deleteBy('ARGV[5]')}
    return { deleted, others }
  end
end
-- PEXPIRE first: when it is out of memory, Redis refuses HSET to a script that has not written yet. The new field
-- before the old one goes, since a hash without fields is gone.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[2], 1)
redis.call('HDEL', KEYS[1], ARGV[1])
return mint(2)`);

const SCRIPTS: KeyScripts = { obtain: OBTAIN, release: RELEASE, transfer: TRANSFER, renew: RENEW };

/**
 * Redisson's RLock: to be shared with Java processes that use `redisson.getLock(name)`. Waiting, and what local callers
 * hand to each other, is as for pub-sub; a lock that is handed over goes from field to field, and Java sees it held.
 *
 * A lock's name is that of the Java side: `registryKey:key` (what a NameMapper there makes of it), or the key alone
 * where the registryKey is empty.
 */
export class RedissonStrategy extends PubSubStrategy {
  static override readonly expireAfter = REDISSON_WATCHDOG_TIMEOUT;
  static override readonly needsRegistryKey = false;

  readonly #publish: 'PUBLISH' | 'SPUBLISH';

  constructor(redis: Redis, settings: StrategySettings) {
    const isSharded = isShardedFor(redis, settings);
    super(redis, settings, SCRIPTS, isSharded);
    this.#publish = isSharded ? 'SPUBLISH' : 'PUBLISH';
  }

  protected override channels(names: LockNames): readonly [string] {
    return [names.redisson(CHANNEL)];
  }

  protected override news(names: LockNames): readonly string[] {
    return [this.#publish, ...this.channels(names)];
  }

  protected override isNews(message: string): boolean {
    return message === UNLOCKED;
  }

  protected override fence(names: LockNames): string {
    return names.redissonKey(TOKEN);
  }
}

/** Whether releases go over sharded channels. Redisson's own rule: on a cluster, if the server has them. */
export function isShardedFor(redis: Redis, { shardedSubscriptionMode: mode }: StrategySettings): boolean {
  return mode === 'auto' ? redis.isCluster : mode === 'on';
}
