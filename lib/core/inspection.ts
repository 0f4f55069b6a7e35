import type { ListedLock, LockState } from '../api/distributed-lock';
import { LockInspectionError, LockKeptError } from '../api/errors';
import { acquiredAtIn, isOfRegistry, isOwner, nameIn } from '../api/owner-name';
import { causeOf, isOfScript, isRightRefused, reasonOf, says } from '../redis/failure';
import { LockNames, lockPrefix } from '../redis/names';
import type { Forced, Inspected, LockBackend, LockInspector } from './backend';

/** The owner values of all that hold a lock. */
export function ownersIn({ owner, owners }: Inspected): string[] {
  if (owners === undefined) return owner === undefined ? [] : [owner];
  return owners.split(' ').map((member) => member.slice(member.indexOf(':') + 1));
}

/** What a registry reports about the locks of all processes. */
export class Inspection {
  readonly #backend: LockBackend;
  readonly #inspector: LockInspector;
  readonly #registryId: string;
  /** ms */
  readonly #timeout: number;
  /** What a key is used as here: for an error about a key that is something else. */
  readonly #usedAs: string;

  constructor(
    backend: LockBackend,
    registryId: string,
    timeout: number,
    usedAs: string,
    inspector = backend.inspector,
  ) {
    this.#backend = backend;
    this.#inspector = inspector;
    this.#registryId = registryId;
    this.#timeout = timeout;
    this.#usedAs = usedAs;
  }

  /** An inspection of the locks of another kind. */
  of(inspector: LockInspector, usedAs: string): Inspection {
    return new Inspection(this.#backend, this.#registryId, this.#timeout, usedAs, inspector);
  }

  async inspect(key: string, names: LockNames): Promise<LockState> {
    try {
      return await this.#inspected(names);
    } catch (error) {
      throw this.#notInspected(key, await this.#withType(error, names));
    }
  }

  /** Calls with the owner values of those that have it. */
  async withOwners<T>(key: string, names: LockNames, call: (owners: string[]) => Promise<T>): Promise<T> {
    try {
      return await call(ownersIn(await this.#ask((inspector) => inspector.inspect(names, this.#timeout))));
    } catch (error) {
      throw this.#notInspected(key, await this.#withType(error, names));
    }
  }

  async forceUnlock(key: string, names: LockNames): Promise<LockState> {
    let found: Forced;
    try {
      found = await this.#ask((inspector) => inspector.forceUnlock(names, this.#timeout, `${this.#registryId}:0`));
    } catch (failure) {
      const error = await this.#withType(failure, names);
      const { cause, reason } = this.#explain(error);
      let message = `It is not known whether lock "${key}" was unlocked by force: ${reason}`;
      if (isNothingDone(error)) message = `Lock "${key}" was not unlocked by force: ${reason}`;
      throw new LockInspectionError(message, key, { cause });
    }
    if (found.isOthersNow) throw new LockKeptError(key);
    return this.#stateOf(found);
  }

  /**
   * The held locks under a registryKey. `match`: a glob for their keys. `count`: how many keys SCAN looks at in a step.
   * `isProof`: whether a value shows that its key is a lock's. Without a registryKey, every key is looked at, and may be data
   * of the application.
   */
  async *list(
    registryKey: string,
    match: string,
    count: number,
    isProof: (owner: string) => boolean = isOwner,
  ): AsyncGenerator<ListedLock, void, undefined> {
    const prefix = lockPrefix(registryKey);
    const seen = new Set<string>();
    const steps = this.#backend.keys(prefix, match, count, this.#timeout);
    try {
      for await (const names of steps) {
        const unseen = names.filter((name) => name.length > prefix.length && !seen.has(name) && seen.add(name));
        const found = await Promise.all(unseen.map((name) => this.#listed(registryKey, name.slice(prefix.length))));
        for (const lock of found) if (lock && (registryKey !== '' || isProof(lock.owner ?? ''))) yield lock;
      }
    } catch (error) {
      if (error instanceof LockInspectionError) throw error;
      const { cause, reason } = this.#explain(error);
      throw new LockInspectionError(`Locks could not be listed: ${reason}`, undefined, { cause });
    }
  }

  /** As QueuedLock. */
  async isAwaitedBy(id: string, names: LockNames, timeout: number): Promise<boolean> {
    if (id === this.#registryId) return false;
    return (await this.#inspector.isAwaitedBy?.(id, names, timeout).catch(() => false)) ?? false;
  }

  #explain(error: unknown): { cause: unknown; reason: string } {
    const cause = causeOf(error, this.#backend.connection);
    return { cause, reason: reasonOf(cause) };
  }

  async #inspected(names: LockNames): Promise<LockState> {
    return this.#stateOf(await this.#ask((inspector) => inspector.inspect(names, this.#timeout)));
  }

  #notInspected(key: string, error: unknown): LockInspectionError {
    const { cause, reason } = this.#explain(error);
    return new LockInspectionError(`Lock "${key}" could not be inspected: ${reason}`, key, { cause });
  }

  /** The error; of a key of another type, one that says what the key is. */
  async #withType(error: unknown, names: LockNames): Promise<unknown> {
    if (!says(error, 'wrongType')) return error;
    return this.#backend.explainWrongType(error, names, this.#usedAs, this.#timeout);
  }

  /** `undefined`: it is free by now, or it is no lock of this type. */
  async #listed(registryKey: string, key: string): Promise<ListedLock | undefined> {
    try {
      const state = await this.#inspected(LockNames.checked(registryKey, key));
      return state.held ? { key, ...state } : undefined;
    } catch (error) {
      // A key that belongs to another lock, or a key of another type.
      if (error instanceof RangeError || says(error, 'wrongType')) return undefined;
      // Without a registryKey it may be data of the application.
      if (registryKey !== '' || !isRightRefused(error)) throw this.#notInspected(key, error);
      const { cause, reason } = this.#explain(error);
      const message = `Locks could not be listed: "${key}" could not be read: ${reason}. Use a match of the locks alone`;
      throw new LockInspectionError(message, key, { cause });
    }
  }

  /** Asks about a lock of the registry's type first. A key of another type may be a shared lock. */
  async #ask<T extends Inspected>(question: (inspector: LockInspector) => Promise<T>): Promise<T> {
    try {
      return await question(this.#inspector);
    } catch (error) {
      if (!says(error, 'wrongType')) throw error;
      return await question(this.#backend.shared.inspector).catch((failure: unknown) => {
        throw isNoSharedLock(failure) ? error : failure;
      });
    }
  }

  #stateOf({ owner, acquiredAt, remaining, fencingToken, waiting, holders, heard }: Forced): LockState {
    return {
      held: owner !== undefined,
      owner,
      name: owner === undefined ? undefined : nameIn(owner),
      isOurs: owner !== undefined && isOfRegistry(owner, this.#registryId),
      acquiredAt: acquiredAt ?? (owner === undefined ? undefined : acquiredAtIn(owner)),
      remaining,
      fencingToken,
      waiting,
      ...(holders === undefined ? {} : { holders }),
      ...(heard === undefined ? {} : { told: heard > 0 }),
    };
  }
}

/** The key is of another type, or no shared lock has its name. A user without the right to ask has no shared locks. */
function isNoSharedLock(failure: unknown): boolean {
  return failure instanceof RangeError || says(failure, 'wrongType') || isRightRefused(failure);
}

/**
 * A replica refuses the first write of the script, and a key of another type its first read. A user without the right to
 * scripts has called none.
 */
function isNothingDone(error: unknown): boolean {
  // What the user may not do in a script may come after its first half.
  return says(error, 'readOnly', 'wrongType') || (isRightRefused(error) && !isOfScript(error));
}
