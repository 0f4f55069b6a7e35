import { clock, reliableUntil } from '../clock';
import type { Redis } from '../redis/client';
import { serverErrorCode } from '../redis/failure';
import { hashTag } from '../redis/names';
import type { Script } from '../redis/script';
import type { Ownership, Renewal } from './strategy';

/** So many keys are renewed by one script: it holds up the server for a fraction of a millisecond. */
const BATCH = 100;

/**
 * Renews many leases by few scripts.
 *
 * The script: KEYS locks; ARGV owner and ttl in ms of each. It returns for each the life of its key in ms, after it was
 * extended where it was shorter than the ttl (and never shortened); -1 nobody's; -2 another owner's; -3 the server could
 * not say.
 */
export class Renewals {
  readonly #redis: Redis;
  readonly #script: Script;
  /** Learnt from a CROSSSLOT answer: this is a cluster, or a proxy that shards. */
  #oneSlotForEachScript = false;

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
    try {
      const keys = batch.map(({ claim }) => claim.names.lock);
      const args = batch.flatMap(({ claim, ttl }) => [claim.owner, String(ttl)]);
      const reply = (await this.#redis.run(this.#script, keys, args, timeout)) as unknown[];
      batch.forEach((renewal, i) => {
        answers.set(renewal, ownership(Number(reply[i]), sentAt));
      });
    } catch (error) {
      if (serverErrorCode(error) !== 'CROSSSLOT' || batch.length === 1) {
        for (const renewal of batch) answers.set(renewal, { state: 'unknown', cause: error });
        return;
      }
      this.#oneSlotForEachScript = true;
      await Promise.all(this.#batches(batch).map((part) => this.#renew(part, timeout, answers)));
    }
  }

  /** As few scripts as may be: at most BATCH keys in each, and on a cluster only keys that surely share a slot. */
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
      Array.from({ length: Math.ceil(group.length / BATCH) }, (_, i) => group.slice(i * BATCH, (i + 1) * BATCH)),
    );
  }
}

export function ownership(answer: number, sentAt: number): Ownership {
  if (answer >= 0) return { state: 'held', until: reliableUntil(sentAt, answer) };
  if (answer === -1 || answer === -2) return { state: answer === -1 ? 'expired' : 'stolen' };
  return { state: 'unknown', cause: undefined };
}
