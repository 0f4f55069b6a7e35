import type { DistributedLock, Lease } from '../api/distributed-lock';
import { CannotAcquireLockError } from '../api/errors';
import { abortSignal, assertRegistry, callback as checkCallback, expected } from '../internal/validation';
import type { LockRegistry } from '../registry/lock-registry';

/** `shared`: together with others that are shared. `exclusive`: alone. */
export type WebLockMode = 'exclusive' | 'shared';

/** What a callback is given. */
export interface WebLock {
  readonly name: string;
  readonly mode: WebLockMode;
  /** Not of the Web Locks API: aborts with a `LockLostError` when the lock is lost. */
  readonly signal: AbortSignal;
}

/** Options of `request`, as those of the Web Locks API. */
export interface WebLockOptions {
  /** @default 'exclusive' */
  mode?: WebLockMode | undefined;
  /**
   * Calls back with `null` if the lock cannot be had at once.
   * @default false
   */
  ifAvailable?: boolean | undefined;
  /** Is refused with a `NotSupportedError`. */
  steal?: boolean | undefined;
  /** Ends the wait: `request` rejects with its reason. */
  signal?: AbortSignal | undefined;
}

/** A request that has its lock, or waits. */
export interface WebLockInfo {
  name: string;
  mode: WebLockMode;
  /** The `id` of the registry, if it has one. */
  clientId: string;
}

/** `LockManager` of the Web Locks API: what `navigator.locks` is. */
export interface WebLocks {
  /**
   * Calls back once it has the lock, and gives it back when what the callback returns has settled. Resolves to that.
   * @throws TypeError when an argument has a wrong type.
   * @throws DOMException NotSupportedError for `steal`, `signal` with `ifAvailable`, and a name that begins with "-".
   * @throws LockLostError after the callback, when the lock was lost under it; and the other errors of `lock()`.
   */
  request<T>(name: string, callback: (lock: WebLock | null) => T): Promise<Awaited<T>>;
  request<T>(name: string, options: WebLockOptions, callback: (lock: WebLock | null) => T): Promise<Awaited<T>>;
  /** The requests that were made here and have not ended: no command is sent. */
  query(): Promise<{ held: WebLockInfo[]; pending: WebLockInfo[] }>;
}

/**
 * The requests of a name that have no lock yet. They ask for it in the order in which they were made, as the
 * specification says: those of one mode together, and the next ones when these were granted, or have left. The
 * read/write lock alone lets readers pass a writer of their process.
 */
class Line {
  /** Those that ask for the lock, and their mode. */
  readonly #asking = new Set<WebLockInfo>();
  #mode: WebLockMode = 'exclusive';
  /** Those behind them, in their order: each with what begins its turn. */
  readonly #behind = new Map<WebLockInfo, () => void>();

  get isEmpty(): boolean {
    return this.#asking.size === 0 && this.#behind.size === 0;
  }

  /** Whether a request that was made now could have the lock before one of these is granted. */
  letsIn(mode: WebLockMode): boolean {
    return this.isEmpty || (mode === 'shared' && this.#mode === 'shared' && this.#behind.size === 0);
  }

  /** Resolves when the request may ask, or has left. */
  join(info: WebLockInfo): Promise<void> {
    return new Promise((resolve) => {
      this.#behind.set(info, resolve);
      this.#next();
    });
  }

  /** It was granted, or is not made any more. */
  leave(info: WebLockInfo): void {
    this.#behind.get(info)?.();
    this.#behind.delete(info);
    this.#asking.delete(info);
    this.#next();
  }

  /** All ask at once: where Redis does not answer, none waits for the end of another one's wait. */
  dissolve(): void {
    for (const info of this.#behind.keys()) this.#ask(info);
  }

  #next(): void {
    for (const info of this.#behind.keys()) {
      if (this.#asking.size > 0 && info.mode !== this.#mode) return;
      this.#ask(info);
    }
  }

  #ask(info: WebLockInfo): void {
    this.#mode = info.mode;
    this.#asking.add(info);
    this.#behind.get(info)?.();
    this.#behind.delete(info);
  }
}

/** The lines of a registry, by name. */
const linesOf = new WeakMap<LockRegistry, Map<string, Line>>();

/** Each name is a read/write lock, which may have several holders, in several processes. */
const NO_STEAL =
  'A read/write lock cannot be stolen: registry.run(key, task, { replace: true }) takes a lock of one holder, and waits for its end';

function notSupported(message: string): DOMException {
  return new DOMException(message, 'NotSupportedError');
}

/**
 * The Web Locks API (`navigator.locks`) over all processes that share the registry's Redis. Each name is a read/write
 * lock of the registry. Requests of one registry have it in their order, and a nested request of the same name waits, as
 * there.
 * @throws TypeError when it is no registry.
 * @example
 * const locks = webLocks(registry);
 * await locks.request('order:42', { mode: 'shared' }, async (lock) => read(lock?.signal));
 */
export function webLocks(registry: LockRegistry): WebLocks {
  assertRegistry(registry, 'readWrite');
  const { id: clientId = '' } = registry as { id?: string };
  const held = new Set<WebLockInfo>();
  const pending = new Set<WebLockInfo>();
  const lines = linesOf.get(registry) ?? new Map<string, Line>();
  linesOf.set(registry, lines);

  /** Waits for the requests of the name that were made before. */
  async function lockInTurn(lock: DistributedLock, info: WebLockInfo, signal: AbortSignal | undefined) {
    const { name } = info;
    const line = lines.get(name) ?? new Line();
    lines.set(name, line);
    const leave = () => {
      line.leave(info);
      if (line.isEmpty && lines.get(name) === line) lines.delete(name);
    };
    signal?.addEventListener('abort', leave);
    try {
      if (!signal?.aborted) await line.join(info);
      return await lock.lock({ signal });
    } catch (error) {
      if (error instanceof CannotAcquireLockError) line.dissolve();
      throw error;
    } finally {
      signal?.removeEventListener('abort', leave);
      leave();
    }
  }

  async function request(name: string, options: WebLockOptions, callback: (lock: WebLock | null) => unknown) {
    // On the web platform, too, `null` is no options, and a function is an object.
    const given = options ?? {};
    if (Object(given) !== given) throw new TypeError(expected('options', 'an object', options));
    const { mode = 'exclusive', ifAvailable = false, steal = false, signal } = given;
    checkCallback('callback', callback);
    if (mode !== 'exclusive' && mode !== 'shared') {
      throw new TypeError(expected('mode', '"exclusive" or "shared"', mode));
    }
    if (signal !== undefined) abortSignal('signal', signal);
    if (name.startsWith('-')) throw notSupported(`A name cannot begin with "-", got "${name}"`);
    if (steal) throw notSupported(NO_STEAL);
    if (ifAvailable && signal !== undefined) throw notSupported('A `signal` has no use with `ifAvailable`');

    const { read, write } = registry.readWrite(name);
    const lock = mode === 'shared' ? read : write;
    const info = { name, mode, clientId };
    pending.add(info);
    let lease: Lease | null;
    try {
      if (!ifAvailable) lease = await lockInTurn(lock, info, signal);
      else lease = await ((lines.get(name)?.letsIn(mode) ?? true) ? lock.tryLock() : null);
    } finally {
      pending.delete(info);
    }
    if (lease === null) return callback(null);
    held.add(info);
    let result: unknown;
    try {
      result = await callback({ name, mode, signal: lease.signal });
    } finally {
      held.delete(info);
      await lease[Symbol.asyncDispose](); // an error of the callback takes precedence over a loss
    }
    lease.signal.throwIfAborted();
    return result;
  }

  return {
    async request(name: string, ...rest: unknown[]): Promise<never> {
      const [options, callback] = rest.length < 2 ? [{}, rest[0]] : rest;
      // A symbol has no text: that is a TypeError, as on the web platform.
      return request(`${name}`, options as WebLockOptions, callback as never) as Promise<never>;
    },
    async query() {
      return structuredClone({ held: [...held], pending: [...pending] });
    },
  };
}
