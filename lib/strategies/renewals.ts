import { clock, reliableUntil } from '../clock';
import type { Redis } from '../redis/client';
import { serverErrorCode } from '../redis/failure';
import { hashTag } from '../redis/names';
import type { Script } from '../redis/script';
import type { Ownership, Renewal } from './strategy';

/** So many keys are renewed by one script: it holds up the server for a fraction of a millisecond. */
const BATCH = 100;

/** Of a script that renews: makes `key` last for `ttl` if it is the owner's, and sets its answer. */
export const EXTEND = `
local life = redis.call('PTTL', key)
if life < ttl or life < 0 then
  -- pcall: one bad key must not keep the others from being renewed.
  local extended = redis.pcall('PEXPIRE', key, math.abs(ttl))
  life = type(extended) == 'table' and extended.err or math.abs(ttl)
end
answers[i] = life`;

/** Of a script that renews: there is no `key`. A replica may be behind, and then that says nothing: it refuses a write. */
export const NOBODYS = `
local written = redis.pcall('PEXPIRE', key, 1)
answers[i] = type(written) == 'table' and written.err or -1`;

/**
 * Renews many leases by few scripts.
 *
 * The script: KEYS locks; ARGV owner and ttl in ms of each. It returns for each the life of its key in ms, after it was
 * extended where it was shorter than the ttl (and never shortened); -1 nobody's; -2 another owner's; or the error for
 * which the server could not say. A negative ttl only asks, and gives back its life to a key that has no end.
 */
export class Renewals {
  readonly #redis: Redis;
  readonly #script: Script;
  /** Learnt from the answers: a cluster, or a proxy that shards, which need not say so. */
  #together: 'all keys' | 'keys of one slot' | 'no keys' = 'all keys';

  constructor(redis: Redis, script: Script) {
    this.#redis = redis;
    this.#script = script;
  }

  /** One answer for each, in order. Never rejects. */
  async run(renewals: readonly Renewal[], timeout: number): Promise<readonly Ownership[]> {
    const answers = new Map<Renewal, Ownership>();
    await Promise.all(this.#batches(renewals).map((batch) => this.#renew(batch, timeout, answers)));
    return renewals.map((renewal) => answers.get(renewal) ?? { state: 'unknown', cause: undefined });
  }

  async #renew(batch: readonly Renewal[], timeout: number, answers: Map<Renewal, Ownership>): Promise<void> {
    const sentAt = clock.now();
    const missing: Renewal[] = [];
    try {
      const keys = batch.map(({ claim }) => claim.names.lock);
      const args = batch.flatMap(({ claim, ttl }) => [claim.owner, String(ttl)]);
      const reply = (await this.#redis.run(this.#script, keys, args, timeout)) as unknown[];
      batch.forEach((renewal, i) => {
        const answer = ownership(reply[i], sentAt);
        answers.set(renewal, answer);
        // The first key decided on the server that was asked: behind a proxy, others may be on another one.
        if (i > 0 && (answer.state === 'expired' || answer.state === 'stolen')) missing.push(renewal);
      });
    } catch (error) {
      if (serverErrorCode(error) !== 'CROSSSLOT' || batch.length === 1) {
        for (const renewal of batch) answers.set(renewal, { state: 'unknown', cause: error });
        return;
      }
      this.#together = 'keys of one slot';
      await Promise.all(this.#batches(batch).map((part) => this.#renew(part, timeout, answers)));
    }
    if (missing.length === 0) return;
    await Promise.all(missing.map((renewal) => this.#renew([renewal], timeout, answers)));
    if (missing.some((renewal) => answers.get(renewal)?.state === 'held')) this.#together = 'no keys';
  }

  /** As few scripts as may be: at most BATCH keys in each, and on a cluster only keys that surely share a slot. */
  #batches(renewals: readonly Renewal[]): Renewal[][] {
    if (this.#together === 'no keys') return renewals.map((renewal) => [renewal]);
    const groups = new Map<string, Renewal[]>();
    for (const renewal of renewals) {
      const { lock } = renewal.claim.names;
      const slot = this.#together === 'keys of one slot' ? (hashTag(lock) ?? lock) : '';
      const group = groups.get(slot);
      if (group === undefined) groups.set(slot, [renewal]);
      else group.push(renewal);
    }
    return [...groups.values()].flatMap((group) =>
      Array.from({ length: Math.ceil(group.length / BATCH) }, (_, i) => group.slice(i * BATCH, (i + 1) * BATCH)),
    );
  }
}

export function ownership(answer: unknown, sentAt: number): Ownership {
  const life = Number(answer);
  if (life >= 0) return { state: 'held', until: reliableUntil(sentAt, life) };
  if (life === -1 || life === -2) return { state: life === -1 ? 'expired' : 'stolen' };
  return { state: 'unknown', cause: new Error(String(answer)) };
}
