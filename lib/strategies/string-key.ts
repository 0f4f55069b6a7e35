import { clock, reliableUntil } from '../clock';
import type { Redis } from '../redis/client';
import { serverErrorCode } from '../redis/failure';
import { hashTag } from '../redis/names';
import { Script } from '../redis/script';
import type { Wait } from '../wait';
import type { StrategySettings } from './index';
import type { Claim, Grant, LockStrategy, Ownership, Refusal, Released, Renewal } from './strategy';

/*
 * The lock as a string key, in the format of Spring Integration's RedisLockRegistry: the value is the owner, and the
 * key always has an expiry. Spring compares owners only with its own, so ours may differ with every acquisition: then
 * a late or repeated command of an earlier holder can never touch a later one.
 *
 * Every script bears being executed twice for one call (a sentinel client repeats a command whose reply was lost).
 */

/**
 * KEYS lock [, fence]; ARGV owner, ttl in ms [, life of the fence in ms].
 * Returns 1 when the lock is the owner's, with a fence its token as text; else { life of the holder's key in ms }.
 *
 * Fencing token: max(last + 1, server time in microseconds). Minted only on a real acquisition, it rises even when the
 * counter was lost. 16 digits are beyond what Lua prints by itself, hence string.format.
 */
const OBTAIN = new Script(`
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
local token = redis.call('GET', KEYS[2])
if not (token and holder) then
  local now = redis.call('TIME')
  token = string.format('%.0f', math.max((tonumber(token) or 0) + 1, now[1] * 1000000 + now[2]))
  redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
end
return token`);

/**
 * KEYS locks; ARGV owner and ttl in ms of each.
 * Returns for each the life of its key in ms, after it was extended where it was shorter than the ttl (and never
 * shortened); -1 nobody's; -2 another owner's; -3 the server could not say.
 */
const RENEW = new Script(`
local answers = {}
for i, key in ipairs(KEYS) do
  local owner, ttl = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  -- pcall: one bad key must not keep the others from being renewed.
  local holder = redis.pcall('GET', key)
  if not holder then
    answers[i] = -1
  elseif type(holder) == 'table' then
    -- A key of another type stands where ours was.
    answers[i] = string.find(holder.err, 'WRONGTYPE', 1, true) and -2 or -3
  elseif holder ~= owner then
    answers[i] = -2
  else
    local life = redis.call('PTTL', key)
    if life < ttl then
      local extended = redis.pcall('PEXPIRE', key, ttl)
      life = type(extended) == 'table' and -3 or ttl
    end
    answers[i] = life
  end
end
return answers`);

/**
 * KEYS lock; ARGV owner, command that deletes, channel, name of the lock.
 * Returns 1 deleted; 2 deleted, but by DEL, since the command is not to be had; 0 nobody's; -1 another owner's.
 */
const RELEASE = new Script(`
local holder = redis.call('GET', KEYS[1])
if not holder then return 0 end
if holder ~= ARGV[1] then return -1 end
local answer = 1
if type(redis.pcall(ARGV[2], KEYS[1])) == 'table' then
  redis.call('DEL', KEYS[1])
  answer = 2
end
-- pcall: a user without rights on channels could not release otherwise. Who waits for a message looks again by itself.
redis.pcall('PUBLISH', ARGV[3], ARGV[4])
return answer`);

/** A fencing counter outlives its last use by a day; when it is gone, the server's time takes over. */
const FENCE_LIFE = String(24 * 60 * 60 * 1000);

/** So many keys are renewed by one script: it holds up the server for a fraction of a millisecond. */
const RENEW_BATCH = 100;

export abstract class StringKeyStrategy implements LockStrategy {
  readonly #redis: Redis;
  readonly #fencing: boolean;
  #deleteCommand: 'UNLINK' | 'DEL' = 'UNLINK';
  /** Learnt from a CROSSSLOT answer: this is a cluster, or a proxy that shards. */
  #oneSlotForEachScript = false;

  constructor(redis: Redis, { fencing }: StrategySettings) {
    this.#redis = redis;
    this.#fencing = fencing;
  }

  abstract wait(claim: Claim, last: Refusal, wait: Wait): Promise<void>;

  async attempt({ names, owner, ttl }: Claim, timeout: number): Promise<Grant | Refusal> {
    const keys = this.#fencing ? [names.lock, names.companion('fence')] : [names.lock];
    const args = this.#fencing ? [owner, String(ttl), FENCE_LIFE] : [owner, String(ttl)];
    const sentAt = clock.now();
    const reply = await this.#redis.run(OBTAIN, keys, args, timeout);
    if (Array.isArray(reply)) {
      return { granted: false, remaining: Number(reply[0]), roundTrip: clock.now() - sentAt };
    }
    return {
      granted: true,
      until: reliableUntil(sentAt, ttl),
      fencingToken: this.#fencing ? Number(reply) : undefined,
    };
  }

  async release({ names, owner }: Claim, timeout: number): Promise<Released> {
    const args = [owner, this.#deleteCommand, names.channel, names.lock];
    const reply = await this.#redis.run(RELEASE, [names.lock], args, timeout);
    if (reply === 2) this.#deleteCommand = 'DEL';
    return reply === 0 ? 'expired' : reply === -1 ? 'stolen' : 'released';
  }

  async renew(renewals: readonly Renewal[], timeout: number): Promise<readonly Ownership[]> {
    const answers = new Map<Renewal, Ownership>();
    await Promise.all(this.#batches(renewals).map((batch) => this.#renewBatch(batch, timeout, answers)));
    return renewals.map((renewal) => answers.get(renewal) ?? { state: 'unknown', cause: undefined });
  }

  async #renewBatch(batch: readonly Renewal[], timeout: number, answers: Map<Renewal, Ownership>): Promise<void> {
    const sentAt = clock.now();
    try {
      const keys = batch.map(({ claim }) => claim.names.lock);
      const args = batch.flatMap(({ claim, ttl }) => [claim.owner, String(ttl)]);
      const reply = (await this.#redis.run(RENEW, keys, args, timeout)) as unknown[];
      batch.forEach((renewal, i) => {
        answers.set(renewal, ownership(Number(reply[i]), sentAt));
      });
    } catch (error) {
      if (serverErrorCode(error) !== 'CROSSSLOT' || batch.length === 1) {
        for (const renewal of batch) answers.set(renewal, { state: 'unknown', cause: error });
        return;
      }
      this.#oneSlotForEachScript = true;
      await Promise.all(this.#batches(batch).map((part) => this.#renewBatch(part, timeout, answers)));
    }
  }

  /** As few scripts as may be: at most RENEW_BATCH keys in each, and on a cluster only keys that surely share a slot. */
  #batches(renewals: readonly Renewal[]): Renewal[][] {
    const groups = new Map<string, Renewal[]>();
    for (const renewal of renewals) {
      const { lock } = renewal.claim.names;
      const slot = this.#oneSlotForEachScript ? (hashTag(lock) ?? lock) : '';
      const group = groups.get(slot);
      if (group === undefined) groups.set(slot, [renewal]);
      else group.push(renewal);
    }
    return [...groups.values()].flatMap((group) =>
      Array.from({ length: Math.ceil(group.length / RENEW_BATCH) }, (_, i) =>
        group.slice(i * RENEW_BATCH, (i + 1) * RENEW_BATCH),
      ),
    );
  }
}

function ownership(answer: number, sentAt: number): Ownership {
  if (answer >= 0) return { state: 'held', until: reliableUntil(sentAt, answer) };
  if (answer === -1 || answer === -2) return { state: answer === -1 ? 'expired' : 'stolen' };
  return { state: 'unknown', cause: undefined };
}
