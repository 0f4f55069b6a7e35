import type { Lease } from '../api/distributed-lock';
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

function notSupported(message: string): DOMException {
  return new DOMException(message, 'NotSupportedError');
}

/**
 * The Web Locks API (`navigator.locks`) over all processes that share the registry's Redis. Each name is a read/write
 * lock of the registry. A nested request of the same name waits, as there.
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
    if (steal) throw notSupported('A lock cannot be stolen: its holder in another process would not learn it at once');
    if (ifAvailable && signal !== undefined) throw notSupported('A `signal` has no use with `ifAvailable`');

    const { read, write } = registry.readWrite(name);
    const lock = mode === 'shared' ? read : write;
    const info = { name, mode, clientId };
    pending.add(info);
    let lease: Lease | null;
    try {
      lease = await (ifAvailable ? lock.tryLock() : lock.lock({ signal }));
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
