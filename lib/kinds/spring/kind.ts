import type { RegistrySettings } from '../../api/options';
import { type LockNames, legacyChannel } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { contended } from '../common/contended';
import { LISTENERS, lockScripts } from '../common/lock-scripts';
import type { LockTypeDefinition } from '../common/registry-parts';
import { MOST_AHEAD, mint, mintBlock, PROLONG, STRING_HELD } from '../common/script-parts';
import { ScriptedFormat } from '../common/scripted-format';

/*
 * The lock as a string key, in the format of Spring Integration's RedisLockRegistry: the value is the owner, and the
 * key always has an expiry. Spring compares owners only with its own, so ours may differ with every acquisition: then
 * a late or repeated command of an earlier holder can never touch a later one.
 */

/**
 * Publishes the lock's name, or another message, on the lock's channel. ARGV[channel] is that of the registry; with one
 * more argument the name goes there too: of another message its readers would not know the lock.
 * Listeners there mostly wait for another lock: this process and one other count. See `OwnerFormat`.
 */
export const publish = (channel: number, message?: string) => `
local heard = redis.pcall('PUBLISH', ARGV[${channel}] .. ':' .. KEYS[1], ${message === undefined ? 'KEYS[1]' : `'${message}'`})
local legacy = ${message === undefined} and ARGV[${channel + 1}] and redis.pcall('PUBLISH', ARGV[${channel}], KEYS[1]) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + math.min(legacy, 2) or ${LISTENERS.refused}`;

/** What `mint` needs, where there is a fence: `isFencing` in Lua. */
const beforeMint = (isFencing: string) => `
local last = ${isFencing} and redis.call('GET', KEYS[2])
local time = ${isFencing} and redis.call('TIME')`;

/** See `OwnerFormat`. */
export const STRING = {
  held: STRING_HELD,
  holder: "redis.call('GET', KEYS[1])",
  isGiven: 'found == to',
  give: `
-- Out of memory: see script-parts.ts.
redis.call('PEXPIRE', lock, left)
redis.call('SET', lock, to, 'PX', left)`,
};

export const SPRING_SCRIPTS = lockScripts('spring', {
  acquire: `
local lock, owner, ttl = KEYS[1], ARGV[1], ARGV[2]
-- Nearly always it is free. Why the server refused this shows below.
local set = not KEYS[2] and redis.pcall('SET', lock, owner, 'NX', 'PX', ttl)
if set and not set.err then return 1 end
local holder = redis.call('GET', lock)
if holder and holder ~= owner then return { redis.call('PTTL', lock), holder } end
${beforeMint('KEYS[2]')}
if not holder then
  redis.call('SET', lock, owner, 'PX', ttl)
else ${PROLONG}
end
if last and holder then return last end
if not KEYS[2] then return 1 end
${mint('KEYS[2]')}`,
  ...STRING,
  publish,
  leftToPollers: 'left to pollers',
  beforeTokens: beforeMint('most'),
  tokens: `
if not most then return 1 end
${mintBlock('KEYS[2]', 'most')}`,
});

/** Spring's string key. */
export class SpringFormat extends ScriptedFormat {
  readonly #legacyChannels: readonly string[];
  readonly #notification: readonly string[];

  constructor(redis: Redis, settings: RegistrySettings) {
    super(redis, settings.fencing, SPRING_SCRIPTS, false);
    const channel = legacyChannel(settings.registryKey);
    this.#legacyChannels = settings.legacyChannel ? [channel] : [];
    this.#notification = settings.legacyChannel ? [channel, 'too'] : [channel];
  }

  channels(names: LockNames): readonly string[] {
    return [names.channel, ...this.#legacyChannels];
  }

  protected releaseOf({ lock }: LockNames): string {
    return lock;
  }

  notification(_names: LockNames): readonly string[] {
    return this.#notification;
  }

  tokensFor(): number {
    return MOST_AHEAD;
  }

  protected fence(names: LockNames): string {
    return names.companion('fence');
  }
}

/** Contended on Spring's format, with waiting by polling and sharing by time slices. */
export const SPIN: LockTypeDefinition = (parts) =>
  contended(parts, new SpringFormat(parts.redis, parts.settings), true);

/** Contended on Spring's format, with waiting by notification. */
export const PUB_SUB: LockTypeDefinition = (parts) => contended(parts, new SpringFormat(parts.redis, parts.settings));
