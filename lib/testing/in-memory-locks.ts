import { nameIn } from '../api/owner-name';
import { checkOptions, nonEmptyString, string, ttl } from '../internal/validation';
import { answered, ClientClosedError } from '../redis/failure';
import { LockNames } from '../redis/names';
import { installFakeableClock } from './fakeable-clock';
import type { Sender } from './in-memory-backend';
import { StoredLock } from './stored-lock';

/** ms */
const STOLEN_FOR = 60_000;

/** Which lock of `InMemoryLocks` is meant. */
export interface WhichLock {
  /**
   * The `registryKey` of the lock, where these locks have registries with several.
   * @default that of the registries
   */
  registryKey?: string | undefined;
}

/** Options of `InMemoryLocks.steal`. */
export interface StealOptions extends WhichLock {
  /**
   * ms for which somebody else has the lock.
   * @default 60_000
   */
  ttl?: number | undefined;
}

/** Who holds a lock in memory. */
export interface InMemoryHolder {
  /** The value that says who, as `LockState.owner`. */
  readonly owner: string;
  /** The option `name` of its registry; `undefined` after `steal`. */
  readonly name: string | undefined;
  /** ms until the lock expires unless it is renewed. */
  readonly remaining: number;
  readonly fencingToken: number;
}

/** A request in a silence. */
interface Unanswered {
  readonly sender: Sender;
  execute(): void;
  fail(): void;
}

/**
 * Locks in memory, in place of a Redis. Registries that are made with one of these exclude each other, as processes do
 * that share a Redis. Its methods simulate expiry, theft and a silent Redis.
 * @example
 * const locks = new InMemoryLocks();
 * const [ours, theirs] = [new InMemoryLockRegistry({ locks }), new InMemoryLockRegistry({ locks })];
 */
export class InMemoryLocks {
  readonly #locks = new Map<string, StoredLock>();
  readonly #registryKeys = new Set<string>();
  readonly #reconnected = new Set<() => void>();
  /** What was requested in the silence, in that order. */
  #unanswered: Unanswered[] = [];
  /** Beyond this number, locks that nobody holds or waits for are removed. */
  #sweepAt = 16;
  /** @internal */
  isSilent = false;
  #lastToken = 0;

  constructor() {
    installFakeableClock();
  }

  /**
   * The lock expires now, for all who share it: the next waiter gets it. Its holder learns that as it does with Redis:
   * when it renews it next, or when it unlocks.
   * @throws Error when nobody holds it.
   */
  expire(key: string, which: WhichLock = {}): void {
    const lock = this.#named(key, which);
    if (lock.state.owner === undefined) throw new Error(`Lock "${key}" cannot expire: nobody holds it`);
    lock.free();
  }

  /**
   * Somebody else, who is none of the registries, has the lock alone from now on. Its holder learns that as with
   * `expire`.
   */
  steal(key: string, options: StealOptions = {}): void {
    const { ttl: stolenFor = STOLEN_FOR, ...which } = options;
    this.#named(key, which).give('somebody else', ttl('ttl', stolenFor));
  }

  /** Who holds the lock; `undefined`: nobody. */
  holder(key: string, which: WhichLock = {}): InMemoryHolder | undefined {
    const { owner, remaining, fencingToken = 0 } = this.#named(key, which).state;
    return owner === undefined ? undefined : { owner, name: nameIn(owner), remaining, fencingToken };
  }

  /** From now on no request is answered, as by a Redis that was frozen or cannot be reached. Locks go on expiring. */
  goSilent(): void {
    this.isSilent = true;
    for (const lock of this.#locks.values()) lock.wakeWaiters();
  }

  /**
   * Requests are answered again. What was requested in the silence is executed first, also if its caller has given up.
   */
  comeBack(): void {
    this.isSilent = false;
    for (const lock of this.#locks.values()) lock.expireAndGrant();
    for (const request of this.#unanswered.splice(0)) request.execute();
    for (const listener of [...this.#reconnected]) listener();
  }

  /** @internal */
  nextToken(): number {
    return ++this.#lastToken;
  }

  /** @internal A registry with this key has these locks. */
  use(registryKey: string): void {
    this.#registryKeys.add(registryKey);
  }

  /** @internal */
  onReconnect(listener: () => void): () => void {
    this.#reconnected.add(listener);
    return () => this.#reconnected.delete(listener);
  }

  /** @internal The lock of this name. */
  find(name: string): StoredLock {
    let lock = this.#locks.get(name);
    if (lock === undefined) {
      if (this.#locks.size >= this.#sweepAt) this.#sweep();
      lock = new StoredLock(this);
      this.#locks.set(name, lock);
    }
    return lock;
  }

  /** @internal The names of the locks that are held. */
  get names(): string[] {
    this.#sweep();
    return [...this.#locks.keys()];
  }

  /**
   * @internal Executes a request, and resolves to its answer. In a silence it is executed when that is over, and
   * rejects with `CommandTimeoutError` after `timeout` ms, or at once when its sender is cut off.
   */
  send<T>(execute: () => T, timeout: number, sender: Sender): Promise<T> {
    if (!this.isSilent) return new Promise((resolve) => resolve(execute()));
    const reply = new Promise<T>((resolve) => {
      const settle = (answer: Promise<T>) => {
        // Nobody may listen any more.
        answer.catch(() => undefined);
        resolve(answer);
      };
      const request = {
        sender,
        execute: () => settle(new Promise((resolve) => resolve(execute()))),
        fail: () => settle(Promise.reject(new ClientClosedError('The registry was closed before Redis answered'))),
      };
      this.#unanswered.push(request);
      if (sender.isCutOff) request.fail();
    });
    return answered(reply, timeout);
  }

  /** @internal Nothing that the sender has requested in a silence is waited for any longer. It is executed all the same. */
  cutOff(sender: Sender): void {
    for (const request of this.#unanswered) if (request.sender === sender) request.fail();
  }

  #sweep(): void {
    for (const [name, lock] of this.#locks) if (lock.isIdle) this.#locks.delete(name);
    this.#sweepAt = 2 * this.#locks.size + 16;
  }

  #named(key: string, which: WhichLock): StoredLock {
    nonEmptyString('key', key);
    checkOptions({ registryKey: string }, which);
    const keys = which.registryKey === undefined ? [...this.#registryKeys] : [which.registryKey];
    const [registryKey] = keys;
    if (registryKey === undefined) throw new Error('No registry was made with these locks yet');
    if (keys.length > 1) {
      const message = `These locks have registries with several registryKeys (${keys.join(', ')}): say which is meant`;
      throw new TypeError(message);
    }
    return this.find(new LockNames(registryKey, key).lock);
  }
}
