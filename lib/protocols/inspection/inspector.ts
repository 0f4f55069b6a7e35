import type { Inspected, LockInspector } from '../../core/backend';
import { clock } from '../../internal/clock';
import { UnexpectedReplyError } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { arrayIn, numberIn, textIn } from '../../redis/reply';
import type { Script } from '../../redis/script';
import { remainingIn } from '../format/replies';
import type { InspectionScripts } from './inspection-scripts';

/** How the locks of one type are inspected. */
interface InspectedType {
  readonly scripts: InspectionScripts;
  /** KEYS of the scripts. */
  keys(names: LockNames): string[];
  /** The channel whose listeners wait, and the command that counts them; `undefined`: not known. */
  listeners?(names: LockNames): readonly [command: 'NUMSUB' | 'SHARDNUMSUB', channel: string];
  /** How the waiters are notified of a forced unlock: the last arguments. */
  notification(names: LockNames): readonly string[];
  /** Knows the command that deletes a lock. */
  readonly format: { readonly deleteCommand: string };
}

/** Inspects the locks of a registry, and unlocks them by force. Keeps nothing. */
export class Inspector implements LockInspector {
  readonly #redis: Redis;
  readonly #type: InspectedType;

  constructor(redis: Redis, type: InspectedType) {
    this.#redis = redis;
    this.#type = type;
  }

  /** `timeout` in ms. */
  inspect(names: LockNames, timeout: number): Promise<Inspected> {
    return this.#look(names, timeout);
  }

  /** As LockInspector. */
  async forceUnlock(names: LockNames, timeout: number): Promise<Inspected> {
    const { format, scripts } = this.#type;
    const until = clock.now() + timeout;
    const found = await this.#look(names, timeout);
    const owners = found.owners ?? found.owner;
    if (owners === undefined) return found;
    const args = [owners, '', format.deleteCommand, ...this.#type.notification(names)];
    const { forceUnlock } = scripts;
    await this.#redis.run(forceUnlock, this.#type.keys(names), args, until - clock.now(), (reply) =>
      numberIn(forceUnlock, reply, reply),
    );
    return found;
  }

  #look(names: LockNames, timeout: number): Promise<Found> {
    const { keys, listeners, scripts } = this.#type;
    const args = [...(listeners?.(names) ?? ['', ''])];
    return this.#redis.run(scripts.inspect, keys(names), args, timeout, (reply) => read(scripts.inspect, reply));
  }
}

interface Found extends Inspected {
  /** Of a shared lock: all that hold it, with spaces between them. */
  readonly owners?: string;
}

function read(script: Script, reply: unknown): Found {
  const [holder, pttl, token, waiting, holders, owners] = arrayIn(script, reply, 4, 6);
  const owner = textIn(script, reply, holder);
  const count = numberIn(script, reply, waiting);
  if (!Number.isInteger(count) || count < -1) throw new UnexpectedReplyError(script.name, reply);
  return {
    owner: owner === '' ? undefined : owner,
    remaining: owner === '' ? 0 : remainingIn(script, reply, pttl),
    fencingToken: token === '' ? undefined : numberIn(script, reply, token),
    waiting: count < 0 ? undefined : count,
    ...(holders === undefined ? {} : { holders: numberIn(script, reply, holders) }),
    ...(owners === undefined || owners === '' ? {} : { owners: textIn(script, reply, owners) }),
  };
}
