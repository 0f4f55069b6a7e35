import { clock, reliableUntil } from '../clock';
import type { Redis } from '../redis/client';
import type { LockNames } from '../redis/names';
import { LockScript, Script } from '../redis/script';
import type { Wait } from '../wait';
import type { StrategySettings } from './index';
import { EXTEND, NOBODYS, Renewals } from './renewals';
import type { Claim, Grant, LockStrategy, Ownership, Refusal, Released, Renewal, Yielded } from './strategy';

/*
 * The lock as a string key, in the format of Spring Integration's RedisLockRegistry: the value is the owner, and the
 * key always has an expiry. Spring compares owners only with its own, so ours may differ with every acquisition: then
 * a late or repeated command of an earlier holder can never touch a later one.
 *
 * Every script bears being executed twice for one call (a sentinel client repeats a command whose reply was lost).
 */

/*
 * Parts of scripts stand in them as text, and not as functions of Lua: a function is made anew at every call of a
 * script, which costs the server as much as a command in it.
 */

/** ms; a fencing counter outlives its last use by a day; when it is gone, the server's time takes over. */
export const FENCE_LIFE = 24 * 60 * 60 * 1000;

/**
 * Mints the fencing token of an acquisition and returns it: max(last + 1, server time in microseconds). It rises with
 * every acquisition, also after the counter was lost. 16 digits are beyond what Lua prints by itself, hence
 * string.format.
 */
const MINT = `
local now = redis.call('TIME')
local token = string.format('%.0f', math.max((tonumber(last) or 0) + 1, now[1] * 1000000 + now[2]))
redis.call('SET', KEYS[2], token, 'PX', ${FENCE_LIFE})
return token`;

/** Deletes the lock: `deleted` is 1, or 2 where the command is not to be had and DEL did it. */
export const deleteBy = (command: string) => `
local deleted = 1
if type(redis.pcall(${command}, KEYS[1])) == 'table' then
  redis.call('DEL', KEYS[1])
  deleted = 2
end`;

/**
 * Tells those who wait the lock's name, on the channels from ARGV[first] on: `heard` is how many listen. pcall: a user
 * without rights on channels could not release otherwise, and who waits for a message looks again by itself.
 */
const tell = (first: number) => `
local heard = 0
for i = ${first}, #ARGV do
  local listening = redis.pcall('PUBLISH', ARGV[i], KEYS[1])
  if type(listening) == 'number' then heard = heard + listening end
end`;

/**
 * KEYS lock [, fence]; ARGV owner, ttl in ms.
 * Returns 1 when the lock is the owner's, with a fence its token as text; else { life of the holder's key in ms }.
 */
const OBTAIN = new LockScript(`
local holder = redis.call('GET', KEYS[1])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif holder == ARGV[1] then
  -- Ours already: the reply of an earlier attempt was lost. A late repetition must not shorten a renewed life.
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
else
  return { redis.call('PTTL', KEYS[1]) }
end
if not KEYS[2] then return 1 end
local last = redis.call('GET', KEYS[2])
if last and holder then return last end
${MINT}`);

/**
 * A replica may be behind: that it has no key says nothing. Raises READONLY there, and does nothing elsewhere.
 */
export const ASSERT_WRITABLE = `redis.call('PEXPIRE', KEYS[1], 1)`;

/**
 * KEYS lock; ARGV owner, command that deletes, channels.
 * Returns 1 or 2 deleted (2: by DEL, since the command is not to be had); 0 nobody's; -1 another owner's.
 */
const RELEASE = new LockScript(
  `
local holder = redis.pcall('GET', KEYS[1])
if not holder then
  ${ASSERT_WRITABLE}
  return 0
end
-- Also when a key of another type stands where ours was.
if holder ~= ARGV[1] then return -1 end
${deleteBy('ARGV[2]')}
${tell(3)}
return deleted`,
  isFound,
);

/**
 * KEYS lock [, fence]; ARGV owner, next owner, ttl in ms, listeners of our own or -1, command that deletes, channels.
 * With -1 the lock is handed over in any case; else it is given up when others than ourselves listen.
 * Returns 1 or the token when it is the next owner's; { 1 or 2 deleted, listeners of others }; { 0 } nobody's;
 * { -1 } another owner's.
 */
const TRANSFER = new LockScript(`
local holder = redis.call('GET', KEYS[1])
if not holder then
  ${ASSERT_WRITABLE}
  return { 0 }
end
local last = KEYS[2] and redis.call('GET', KEYS[2])
if holder == ARGV[2] then return last or 1 end
if holder ~= ARGV[1] then return { -1 } end
local own = tonumber(ARGV[4])
if own >= 0 then
  ${tell(6)}
  if heard > own then
    ${deleteBy('ARGV[5]')}
    return { deleted, heard - own }
  end
end
-- PEXPIRE first: when it is out of memory, Redis refuses SET to a script that has not written yet.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if not KEYS[2] then return 1 end
${MINT}`);

/** Of a script that releases. */
export function isFound(answer: unknown): boolean {
  return Number(answer) > 0;
}

/** As `Renewals` has it. */
const RENEW = new Script(`
local answers = {}
for i, key in ipairs(KEYS) do
  local owner, ttl = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  -- pcall: one bad key must not keep the others from being renewed.
  local holder = redis.pcall('GET', key)
  if not holder then
    ${NOBODYS}
  elseif type(holder) == 'table' then
    -- A key of another type stands where ours was.
    answers[i] = string.find(holder.err, 'WRONGTYPE', 1, true) and -2 or holder.err
  elseif holder ~= owner then
    answers[i] = -2
  else
    ${EXTEND}
  end
end
return answers`);

/** In place of the number of our own listeners: hand the lock over, whoever listens. */
const NEVER_YIELD = -1;

/** The scripts that write a lock's key. Those of another format have the same KEYS, ARGV and answers. */
export interface KeyScripts {
  readonly obtain: Script;
  readonly release: Script;
  readonly transfer: Script;
  readonly renew: Script;
}

const SPRING: KeyScripts = { obtain: OBTAIN, release: RELEASE, transfer: TRANSFER, renew: RENEW };

export abstract class StringKeyStrategy implements LockStrategy {
  /** ms; default of the option `expireAfter`. */
  static readonly expireAfter: number = 60_000;
  /** Whether a lock's name has to begin with a `registryKey`. */
  static readonly needsRegistryKey: boolean = true;

  readonly queue: 'local' | 'redis' = 'local';
  protected readonly redis: Redis;
  protected readonly fencing: boolean;
  readonly #scripts: KeyScripts;
  readonly #renewals: Renewals;
  readonly #legacyChannel: boolean;
  protected deleteCommand: 'UNLINK' | 'DEL' = 'UNLINK';

  constructor(redis: Redis, { fencing, legacyChannel }: StrategySettings, scripts = SPRING) {
    this.redis = redis;
    this.fencing = fencing;
    this.#scripts = scripts;
    this.#renewals = new Renewals(redis, scripts.renew);
    this.#legacyChannel = legacyChannel;
  }

  abstract readonly handOver: number;
  abstract wait(claim: Claim, last: Refusal, wait: Wait): Promise<Grant | undefined>;
  abstract transfer(from: Claim, to: Claim, mayYield: boolean, timeout: number): Promise<Grant | Yielded | Released>;

  async attempt({ names, owner, ttl, sentAt }: Claim, timeout: number): Promise<Grant | Refusal> {
    const reply = await this.redis.run(this.#scripts.obtain, this.#keys(names), [owner, String(ttl)], timeout);
    if (Array.isArray(reply)) {
      return { granted: false, remaining: Number(reply[0]), roundTrip: clock.now() - sentAt };
    }
    return this.#grant(reply, sentAt, ttl);
  }

  async release({ names, owner }: Claim, timeout: number): Promise<Released> {
    const args = [owner, this.deleteCommand, ...this.news(names)];
    return this.released(Number(await this.redis.run(this.#scripts.release, [names.lock], args, timeout)));
  }

  /** Hands over, or gives up to `others`: how many listen besides our own listeners. */
  protected async handOn(
    from: Claim,
    to: Claim,
    timeout: number,
    ownListeners = NEVER_YIELD,
  ): Promise<Grant | Released | { readonly others: number }> {
    const { names } = from;
    const { sentAt } = to;
    const args = [from.owner, to.owner, String(to.ttl), String(ownListeners), this.deleteCommand];
    const { transfer } = this.#scripts;
    const reply = await this.redis.run(transfer, this.#keys(names), [...args, ...this.news(names)], timeout);
    if (!Array.isArray(reply)) return this.#grant(reply, sentAt, to.ttl);
    const released = this.released(Number(reply[0]));
    return released === 'released' ? { others: Number(reply[1]) } : released;
  }

  /** The channels on which a release is told. */
  protected channels(names: LockNames): readonly string[] {
    return this.#legacyChannel ? [names.channel, names.legacyChannel] : [names.channel];
  }

  /** How a release is told: the last of the scripts' ARGV. */
  protected news(names: LockNames): readonly string[] {
    return this.channels(names);
  }

  /** The key of the fencing counter. Throws `RangeError` when it could not share the lock's hash slot. */
  protected fence(names: LockNames): string {
    return names.companion('fence');
  }

  assertNames(names: LockNames): void {
    if (this.fencing) this.fence(names);
  }

  async close(): Promise<void> {}

  #keys(names: LockNames): string[] {
    return this.fencing ? [names.lock, this.fence(names)] : [names.lock];
  }

  #grant(reply: unknown, sentAt: number, ttl: number): Grant {
    return {
      granted: true,
      until: reliableUntil(sentAt, ttl),
      fencingToken: this.fencing ? Number(reply) : undefined,
    };
  }

  protected released(reply: number): Released {
    if (reply === 2) this.deleteCommand = 'DEL';
    return reply === 0 ? 'expired' : reply === -1 ? 'stolen' : 'released';
  }

  renew(renewals: readonly Renewal[], timeout: number): Promise<readonly Ownership[]> {
    return this.#renewals.run(renewals, timeout);
  }
}
