import { type DistributedLock, type Lease, type LockOptions, LockRegistry, LockTimeoutError } from '../../lib';

/** Locks in the memory of this process, for tests without Redis: a segmented lock needs no more than a LockRegistry. */
export class LocalRegistry extends LockRegistry {
  /** The keys of all acquisitions, in order, with repetitions. */
  readonly contended: string[] = [];
  readonly #locks = new Map<string, LocalLock>();

  obtain(key: string): LocalLock {
    const lock = this.#locks.get(key) ?? new LocalLock(key, this.contended);
    this.#locks.set(key, lock);
    return lock;
  }

  /** The held keys. */
  get held(): string[] {
    return [...this.#locks.values()].filter((lock) => lock.isAcquiredInThisProcess).map(({ key }) => key);
  }

  /** Number of waiters of a key. */
  waiting(key: string): number {
    return this.obtain(key).waiting;
  }
}

class LocalLock implements DistributedLock {
  readonly key: string;
  isAcquiredInThisProcess = false;
  readonly #contended: string[];
  readonly #waiters = new Set<() => void>();

  constructor(key: string, contended: string[]) {
    this.key = key;
    this.#contended = contended;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  async lock({ waitTime = Number.POSITIVE_INFINITY, signal }: LockOptions = {}): Promise<Lease> {
    this.#contended.push(this.key);
    signal?.throwIfAborted();
    if (this.isAcquiredInThisProcess) await this.#turn(waitTime, signal);
    this.isAcquiredInThisProcess = true;
    return this.#lease();
  }

  async tryLock(options: LockOptions = {}): Promise<Lease | null> {
    return this.lock({ waitTime: 0, ...options }).catch((error: unknown) => {
      if (error instanceof LockTimeoutError) return null;
      throw error;
    });
  }

  async run<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T> {
    const lease = await this.lock(options);
    try {
      return await task(lease);
    } finally {
      await lease.unlock();
    }
  }

  inspect(): never {
    throw new Error('No test asks for it');
  }

  readonly forceUnlock = this.inspect;
  readonly tryRun = this.inspect;

  async unlock(): Promise<void> {
    this.isAcquiredInThisProcess = false;
    const [first] = this.#waiters;
    first?.();
  }

  #turn(waitTime: number, signal: AbortSignal | undefined): Promise<void> {
    if (waitTime === 0) throw new LockTimeoutError(this.key, 0);
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        this.#waiters.delete(enter);
        clearTimeout(timer);
        how();
      };
      const enter = () => {
        this.isAcquiredInThisProcess = true;
        settle(resolve);
      };
      const giveUp = () => settle(() => reject(new LockTimeoutError(this.key, waitTime)));
      const timer = waitTime === Number.POSITIVE_INFINITY ? undefined : setTimeout(giveUp, waitTime);
      signal?.addEventListener('abort', () => settle(() => reject(signal.reason)));
      this.#waiters.add(enter);
    });
  }

  #lease(): Lease {
    const unlock = () => this.unlock();
    return {
      key: this.key,
      signal: new AbortController().signal,
      remaining: Number.POSITIVE_INFINITY,
      fencingToken: undefined,
      assertHeld: () => undefined,
      renew: async () => undefined,
      eval: async () => undefined,
      unlock,
      [Symbol.asyncDispose]: unlock,
    };
  }
}
