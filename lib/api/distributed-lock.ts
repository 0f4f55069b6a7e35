/* What application code depends on. Nothing here knows Redis: unit tests may give a service another implementation. */

/** Options of one acquisition. Durations are in ms. */
export interface LockOptions {
  /**
   * ms, at least 5. If given, the lease is fixed: it is not renewed, unless `renew` is true, and then at least 30.
   * @default the registry's `expireAfter`
   */
  ttl?: number | undefined;
  /**
   * Whether the watchdog renews this lease.
   * @default the registry's `renew` without `ttl`, false with it
   */
  renew?: boolean | undefined;
  /**
   * ms to wait at most, one budget for the local queue and Redis together. 0: at most one attempt, and
   * none where this process has the lock.
   * @default Infinity for `lock` and `run`, 0 for `tryLock` and `tryRun`
   */
  waitTime?: number | undefined;
  /**
   * ms; for this long after its acquisition nobody else gets the lock, even if it is unlocked earlier: so a short job
   * runs once on machines whose clocks differ. The lease ends at `unlock()` in any case; the key in Redis stays until
   * then, without a holder. `close()` does not wait for it. After a crash the lock ends with its ttl. At most the ttl.
   * A nested call extends it to this many ms from that call.
   * @default 0
   */
  minHold?: number | undefined;
  /**
   * How many permits of a semaphore to take, all or none. First come, first served: nobody behind a caller that waits for
   * many enters before it. More than there are is a `RangeError`, as more than 1 is for other locks.
   * @default 1
   */
  permits?: number | undefined;
  /**
   * Whether to take the lock from its holder, which is told: its signal aborts at once, with `by` in the `LockLostError`. This
   * call enters when the task of the holder has ended, or after `grace`. If another call replaces this one before, it never
   * enters, and rejects with `LockLostError` (`stolen`). A holder that is not told is waited for, as without this option: its
   * registry has no inbox (the option `inbox`, or `replace`, opens it), or is of another library. So is the end of a `minHold`
   * after its unlock. For locks of type `spin`, `pub-sub`, `fair` and `redisson`; others are a `TypeError`. Not for `lead` or a
   * loop of retries: two processes would take it from each other for ever.
   * @default false
   */
  replace?: boolean | undefined;
  /**
   * ms that the task of a holder has to end that is replaced, beyond the `waitTime`. After that both may run: see fencing
   * tokens.
   * @default 5_000
   */
  grace?: number | undefined;
  /**
   * Stops waiting: the call rejects at once with `signal.reason`. It has no influence on a lease that was obtained.
   * @default none
   */
  signal?: AbortSignal | undefined;
}

/**
 * Why a lease was lost. `expired`: the key is gone, as after an unlock by force, or a lease that is not renewed came to
 * its end. `stolen`: another owner has the key. `unconfirmed`: a renewed lease ended because Redis was silent. `closed`:
 * by `registry.close()`.
 */
export type LockLostReason = 'expired' | 'stolen' | 'unconfirmed' | 'closed';

/** What the script of `Lease.eval` is called with. */
export interface LeaseEvalOptions {
  /**
   * KEYS of the script.
   * @default none
   */
  keys?: readonly string[] | undefined;
  /**
   * ARGV of the script.
   * @default none
   */
  arguments?: readonly string[] | undefined;
}

/** One holder's right, from acquisition to unlock or loss. */
export interface Lease extends AsyncDisposable {
  readonly key: string;
  /**
   * Aborts with a `LockLostError` when the lease is lost. A local timer does that, so it needs no answer of Redis.
   * `unlock()` does not abort it. Its listeners run in the async context in which the signal was first read.
   * @example
   * await fetch(url, { signal: lease.signal });
   */
  readonly signal: AbortSignal;
  /**
   * Aborts when somebody would like this task to end early: `DistributedLock.ask`. The reason is a `LockAskedError`, which says
   * who, and why. The lease stays held: it is no loss. To read it opens the inbox of the registry.
   * @example
   * if (lease.asked.aborted) break;
   */
  readonly asked: AbortSignal;
  /**
   * ms for which the lease is still held, computed when it is read. 0 when it is over, or Redis has to confirm it
   * first.
   */
  readonly remaining: number;
  /** A number that rises with every acquisition of the key. `undefined` without `fencing: true`. */
  readonly fencingToken: number | undefined;
  /**
   * Returns if the lease is held now.
   * @throws LockLostError when it is over, or Redis has to confirm it first.
   * @throws NotLockOwnerError after `unlock()`.
   */
  assertHeld(): void;
  /**
   * Makes the lease last at least `ttl` ms from now, and never less than before.
   * @param ttl ms, at least 5; by default the ttl that it was taken with
   * @throws LockLostError when it is over.
   * @throws NotLockOwnerError after `unlock()`.
   * @throws CannotAcquireLockError when Redis failed or was silent; then `remaining` is as it was.
   * @throws TypeError or RangeError when the ttl is not valid.
   */
  renew(ttl?: number): Promise<void>;
  /**
   * Runs a Lua script, atomically, if the lease is still held at that moment: a write into the same Redis that no late
   * holder can make. The script sees KEYS and ARGV as given. Resolves to its reply, in the client's default types;
   * errors that it raises or returns reject as they come. On a cluster its keys must share the lock's hash slot.
   * @param script as for EVAL. What it writes before it raises an error stays.
   * @throws LockLostError when the lease is over; then the script did not run.
   * @throws LeaseEvalError when Redis did not answer: it may have run, or may still run while the lease is held, though
   *   not after a later script of this lease. It runs once at most, also with a client that repeats commands.
   * @throws NotLockOwnerError after `unlock()`.
   * @throws TypeError when the script, a key or an argument is not a string.
   * @throws RangeError when a key is in another hash slot of the cluster, or the lock's name has braces that are no hash
   *   tag; nothing is sent then.
   * @example
   * await lease.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", { keys: ['stock:42'], arguments: ['-1'] });
   */
  eval(script: string, options?: LeaseEvalOptions): Promise<unknown>;
  /**
   * Ends the lease here, and leaves the lock taken for its ttl from now on, or as long as its key had left, if that is
   * more: after a `renew`, or where this process took the lock for a caller before with a longer ttl. Resolves to a text
   * with which one process, this or another, now or after a restart, goes on: see `LockRegistry.adopt`. It has some 150
   * characters more than the key, and a process that has it and Redis can adopt. If nobody does, the lock ends with its
   * key.
   *
   * From the call on this lease is over: nothing renews it, `unlock()` and the end of an `await using` or a `run` do
   * nothing, `signal` never aborts, and the next local caller has its turn, and finds the lock taken.
   * @throws LockLostError when the lease is over.
   * @throws NotLockOwnerError after `unlock()` or `detach()`.
   * @throws LockReleaseError when Redis did not confirm it. The lease is over then too: it is given back.
   * @throws TypeError for what cannot travel: semaphores, read/write locks, several keys, `redisson-fair`, a nested call.
   * @example
   * await queue.add('ship', { order, lease: await lease.detach() });
   */
  detach(): Promise<string>;
  /**
   * Gives the lock back. The next local caller has its turn in any case. A second call does nothing.
   * @throws LockLostError when the lease had been lost.
   * @throws LockReleaseError when Redis did not confirm the release.
   */
  unlock(): Promise<void>;
  /**
   * Unlocks, and never throws, so that it cannot hide an error of the block. A loss shows on `signal`.
   * @example
   * await using lease = await lock.lock(); // unlocked at the end of the block
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The lease of several locks. It is held as long as each of them is, and lost when the first of them is lost. */
export interface MultiLease extends Lease {
  /** All keys, for messages. */
  readonly key: string;
  /** Each lock has a token of its own: see `fencingTokens`. */
  readonly fencingToken: undefined;
  /** The token of each key; empty without `fencing: true`. */
  readonly fencingTokens: ReadonlyMap<string, number>;
  /**
   * A script is checked against one lock only.
   * @throws TypeError always.
   */
  eval(): Promise<never>;
  /**
   * Several locks do not travel together.
   * @throws TypeError always.
   */
  detach(): Promise<never>;
}

/** What the task of `LockRegistry.lead` is given. */
export interface Leadership {
  /** Aborts when the lease is lost, and with the signal that ends `lead`: the task has to end then. */
  readonly signal: AbortSignal;
  readonly lease: Lease;
}

/** The task ran under the lock, or was not called. */
export type TryRunResult<T> = { readonly ran: true; readonly value: T } | { readonly ran: false };

/** What is known of a lock, all of one moment. */
export interface LockState {
  /** Somebody has the lock; or it was unlocked, and stays taken until its `minHold` ends. */
  readonly held: boolean;
  /**
   * The value in Redis that says who; `undefined` when the lock is free. `kept@` before it: who unlocked it; `detached@`:
   * who detached its lease.
   */
  readonly owner: string | undefined;
  /**
   * The name of the registry in the owner value, by default host and pid; `undefined` for owners of other libraries.
   */
  readonly name: string | undefined;
  /** `owner` is of the registry that was asked, which has not unlocked it. */
  readonly isOurs: boolean;
  /**
   * ms since 1970: when the process of `owner` acquired it, whichever of its callers has it now. By the clock of that
   * process; by the server's where `fair` handed it over. `undefined`: it is free, or its owner value does not say: it is
   * of Java, or of a version before this one.
   */
  readonly acquiredAt: number | undefined;
  /** ms until the key expires unless it is renewed; `Infinity` without an expiry, 0 when the lock is free. */
  readonly remaining: number;
  /**
   * With `fencing: true`: the last token that was taken, while the lock is held. Callers of its process that wait may get
   * it, or one before it.
   */
  readonly fencingToken: number | undefined;
  /**
   * How many wait. `fair` and `redisson-fair`: processes in the queue. `pub-sub` and `redisson`: connections that
   * listen for a release, also for a second after they waited. Semaphores and read/write locks: processes in the queue,
   * a process that waits for reading and for writing twice. `undefined` where it cannot be known: with `spin`; with
   * `pub-sub` on a cluster; with `redisson` on a cluster without sharded channels; without the right to PUBSUB.
   */
  readonly waiting: number | undefined;
  /**
   * How many permits of a semaphore are taken, or how many have a read/write lock: readers of one process that are in
   * together count as one. The lease of `owner` lasts longest.
   */
  readonly holders?: number;
  /**
   * Only from `forceUnlock`, where somebody had the lock: whether its process heard of it at once, and aborts the signal. One
   * without an inbox (see the option `inbox`) finds out by its next renewal. `undefined` on a cluster where it is not known.
   */
  readonly told?: boolean;
}

/** A lock that `RedisLockRegistry.list` found. */
export interface ListedLock extends LockState {
  /** What the application locks. */
  readonly key: string;
}

/** The lock of one key. */
export interface DistributedLock {
  readonly key: string;
  /**
   * Waits for the lock.
   * @throws `signal.reason`.
   * @throws LockTimeoutError when `waitTime` is over.
   * @throws LockQueueFullError when it would wait, and `maxWaiting` callers do.
   * @throws LockLostError inside a `run` of the lock whose lease is lost.
   * @throws CannotAcquireLockError when Redis failed or was silent.
   * @throws RegistryClosedError when the registry is closed.
   * @throws TypeError or RangeError when an option is not valid.
   * @example
   * const lease = await registry.obtain('order:42').lock();
   * try {
   *   // one holder among all processes
   * } finally {
   *   await lease.unlock();
   * }
   */
  lock(options?: LockOptions): Promise<Lease>;
  /**
   * Makes one attempt, or waits for up to `waitTime`. Returns `null` only when the lock is taken, or another caller comes
   * first: as Redis answered, or in this process. It is taken too while a `minHold` keeps it.
   * @throws `signal.reason`, LockQueueFullError and LockLostError as `lock` does.
   * @throws CannotAcquireLockError when Redis failed or was silent. Without `waitTime`, within 300 ms while the client says
   *   that it has no connection, else after `commandTimeout`.
   * @throws RegistryClosedError when the registry is closed.
   * @throws TypeError or RangeError when an option is not valid.
   * @example
   * const lease = await registry.obtain('order:42').tryLock();
   * if (lease === null) return; // it is in progress elsewhere
   */
  tryLock(options?: LockOptions): Promise<Lease | null>;
  /**
   * Locks, runs the task, unlocks. Opens a scope: a nested `run` of the same lock re-enters. An error of the task takes
   * precedence over an error of the release, and over a loss that is not its cause.
   * @throws LockLostError when the lease was lost under a task that succeeded, whose value is the `result`; or under one
   *   that rejected with the signal's reason or an `AbortError`, which is the `cause`. Also as `lock` does.
   * @throws `signal.reason`, LockTimeoutError and LockQueueFullError as `lock` does.
   * @throws CannotAcquireLockError when Redis failed or was silent.
   * @throws RegistryClosedError when the registry is closed.
   * @throws TypeError or RangeError when an option is not valid.
   * @example
   * await registry.obtain('order:42').run(({ signal }) => ship(order, signal), { waitTime: 5_000 });
   */
  run<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T>;
  /**
   * Does what `run` does, if the lock is free: makes one attempt, or waits for up to `waitTime`. `{ ran: false }` only
   * where `tryLock` returns `null`; the task was not called then.
   * @throws LockLostError as `run` does, and `signal.reason` and LockQueueFullError.
   * @throws CannotAcquireLockError when Redis failed or was silent.
   * @throws RegistryClosedError when the registry is closed.
   * @throws TypeError or RangeError when an option is not valid.
   * @example
   * const { ran } = await registry.obtain('nightly').tryRun(() => clean(), { minHold: 30_000 }); // once for each tick of cron
   */
  tryRun<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<TryRunResult<T>>;
  /**
   * Ends the oldest lease of this lock that was taken with `lock` or `tryLock` and not unlocked: in the caller's scope,
   * or outside all scopes.
   * @throws NotLockOwnerError when there is none, or a shared lock has several; then nothing changes.
   * @throws LockLostError when that lease had been lost.
   * @throws LockReleaseError when Redis did not confirm the release.
   */
  unlock(): Promise<void>;
  /**
   * Asks who has the lock, for how long, and how many wait: one script.
   * @throws LockInspectionError when Redis failed or was silent.
   * @example
   * const { held, name, remaining } = await registry.obtain('order:42').inspect();
   */
  inspect(): Promise<LockState>;
  /**
   * Takes the lock by force from the owner that has it, and notifies the waiters: two scripts. For people on call: the
   * holder learns of it at once where its registry has an inbox (`told`), or listens for releases (not of a semaphore or a
   * read/write lock), and by its next renewal otherwise, and until then two tasks may run. Resolves to what `inspect` would have said before. If
   * that owner had lost the lock or given it back meanwhile, nothing is done: it resolves to a lock that is not held, or
   * rejects where another owner has it, which keeps it.
   * @throws LockInspectionError when Redis failed or was silent: the lock may be unlocked, or not; without a `cause` when
   *   another owner has it by now.
   */
  forceUnlock(): Promise<LockState>;
  /**
   * Asks the holder to end early: its `lease.asked` aborts. Nothing is taken. Resolves to whether its process heard it: its
   * registry has an inbox (see the option `inbox`), which a first read of `lease.asked` opens. A semaphore or a read/write lock:
   * all that hold it are asked.
   * @param why what the holder reads, up to 200 characters
   * @throws LockInspectionError when Redis failed or was silent.
   * @throws TypeError when `why` is no string.
   * @example
   * await registry.obtain('index').ask('deploy of 12:00');
   */
  ask(why?: string): Promise<boolean>;
  /** Whether this registry holds the lock, as far as it knows: no command is sent. */
  readonly isAcquiredInThisProcess: boolean;
}

/** The two locks of a read/write lock: many readers, or one writer. */
export interface ReadWriteLock {
  readonly key: string;
  /** Readers share it. Inside the caller's own write scope it enters on the write lease, without a command. */
  readonly read: DistributedLock;
  /** One writer, and no readers. Inside the caller's own read scope it rejects: it would wait for itself. */
  readonly write: DistributedLock;
}

/** Hands out locks by key. */
export interface LockSource {
  obtain(key: string): DistributedLock;
}
