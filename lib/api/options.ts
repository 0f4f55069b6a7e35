import type { LockType, ShardedSubscriptionMode, SharedKind } from './lock-types';
import type { WarningListener } from './warnings';

/** Options that every registry has, wherever its locks are. Durations are in ms. */
export interface RegistryOptions {
  /**
   * What a person reads in the owner values of this registry, in Redis and from `inspect()`: which process holds a
   * lock. At most 64 bytes, without spaces, control characters, `@` and braces; without `:` for the Redisson types.
   * @default '<hostname>:<pid>'; '<hostname>/<pid>' for `redisson` and `redisson-fair`
   */
  name?: string | undefined;
  /**
   * How a lock is written in Redis, and how a waiter learns that it is free.
   * @default 'spin'
   */
  lockType?: LockType | undefined;
  /**
   * ms, at least 30, or 5 without `renew`; the ttl of a lease that is taken without one. The watchdog renews at a third of
   * it, and one renewal may come late: so leave much more than a round trip.
   * @default 60_000; 30_000 for `redisson` and `redisson-fair`
   */
  expireAfter?: number | undefined;
  /**
   * Whether the watchdog renews leases that are taken without a ttl.
   * @default true
   */
  renew?: boolean | undefined;
  /**
   * ms after its acquisition at which the watchdog stops renewing a lease, which then ends with its ttl.
   * @default no limit
   */
  maxHold?: number | undefined;
  /**
   * Whether leases have a fencing token.
   * @default false
   */
  fencing?: boolean | undefined;
  /**
   * Whether this registry opens its inbox with its first lease: a forced unlock is then heard at once, and `replace` of another
   * process can take its locks. `replace`, and the first read of `lease.asked`, open it too. For `spin` it is one more
   * connection.
   * @default false
   */
  inbox?: boolean | undefined;
  /**
   * The maximum number of cached locks. Beyond it, the least recently used lock that is not in use is removed.
   * @default 100_000
   */
  cacheCapacity?: number | undefined;
  /**
   * ms; the library's own deadline for one Redis command.
   * @default 5_000
   */
  commandTimeout?: number | undefined;
  /**
   * ms; a wait during which Redis has not answered, or too few of `minReplicas` have, for this long rejects with
   * `CannotAcquireLockError`.
   * @default 10_000
   */
  unavailableAfter?: number | undefined;
  /**
   * How many callers of this registry may wait for one lock (a whole number from 1), as `maxPending` of async-lock. A
   * call that would be one more rejects with `LockQueueFullError`, as soon as it is known that the lock is not free.
   * `tryLock()` without a `waitTime` does not wait. A semaphore, and each side of a read/write lock, counts for itself;
   * a call for several keys rejects when one that it waits for is full, and a call for segments when all are.
   * @default no limit
   */
  maxWaiting?: number | undefined;
  /**
   * ms after which a wait causes the warning `LONG_WAIT`, which says who holds the lock, and again whenever it is twice
   * as long; `Infinity`: never.
   * @default 30_000
   */
  warnAfter?: number | undefined;
  /**
   * ms after which a lease that is still held causes the warning `LONG_HOLD` in the process that holds it, and again
   * whenever it is held for twice as long; `Infinity`: never.
   * @default Infinity
   */
  warnHeldAfter?: number | undefined;
  /**
   * Whether the warning `LONG_HOLD` says where the lock was asked for. It costs every call some microseconds.
   * @default false
   */
  captureStack?: boolean | undefined;
  /**
   * Receives warnings that no call can report.
   * @default `process.emitWarning`
   */
  onWarning?: WarningListener | undefined;
}

/** Called with each message of a channel. */
export type MessageListener = (message: string, channel: string) => unknown;

/** A pub/sub connection, by structure: node-redis' client, cluster and sentinel have it. */
export interface RedisSubscriber {
  subscribe(channel: string, listener: MessageListener): Promise<unknown>;
  unsubscribe(channel: string, listener?: (message: unknown, channel: unknown) => unknown): Promise<unknown>;
  /** Sharded channels, for the lock types that need them on a cluster. */
  sSubscribe?(channel: string, listener: MessageListener): Promise<unknown>;
  sUnsubscribe?(channel: string, listener?: (message: unknown, channel: unknown) => unknown): Promise<unknown>;
  /** For the events `ready` and `node-ready`: after a reconnect all waiters poll. */
  on?(event: string, listener: () => void): unknown;
  off?(event: string, listener: () => void): unknown;
}

/** Options of a `RedisLockRegistry`. Durations are in ms. */
export interface RedisLockRegistryOptions extends RegistryOptions {
  /**
   * The prefix of every key in Redis: a lock's name there is `registryKey:key`. It may be empty, but for
   * `fair`: then the name is the key, as in `redisson.getLock(key)`, and as other programs have names without a colon.
   */
  registryKey: string;
  /**
   * ms between two attempts while another process holds the key. Waiters that are notified poll after ten of these. A
   * process of type `spin` that sees others have the lock in turn asks up to eight times as often, so as not to miss
   * every turn; with `sharedWithPollers` it doesn't. With `spin`, one whose interval is longer than that of others may wait for several of their slices.
   * @default 100
   */
  idleBetweenTries?: number | undefined;
  /**
   * ms for which one process may pass a lock on among its own callers before it gives other processes a chance; 0: it
   * releases the lock after every lease. The fair types have a queue in place of it.
   * @default for `spin` 4 `idleBetweenTries`, from 50 to 400, rising to four times that while no other process is seen to
   * take the lock, and 1.2 `idleBetweenTries` while several do; 50 for `pub-sub` and `redisson`
   */
  handOver?: number | undefined;
  /**
   * Whether others take these locks by polling, and publish no releases: Spring's SPIN_LOCK (Spring's default), Redisson's
   * spin lock, a loop of SET NX, or, during a rolling change, processes with `lockType: 'spin'`. With `fair` also whether
   * anybody takes them without a ticket in its queue: Spring's PUB_SUB_LOCK, or processes with `lockType: 'pub-sub'`. A
   * busy lock is left free for them now and then, so everybody waits longer.
   * @default false
   */
  sharedWithPollers?: boolean | undefined;
  /**
   * Whether releases are also sent and received on the channel of Spring Integration up to 6.4.7 and 6.5.2, which had
   * one for all locks of a registry.
   * @default false
   */
  legacyChannel?: boolean | undefined;
  /**
   * Whether releases of `redisson` and `redisson-fair` locks go over sharded channels. It has to be as on the Java
   * side.
   * @default 'auto', as there: on a cluster, if the server has them
   */
  shardedSubscriptionMode?: ShardedSubscriptionMode | undefined;
  /**
   * ms for which a waiter of a `redisson-fair` lock keeps the first position in the queue without taking the lock. It
   * has to be as on the Java side.
   * @default 300_000, as there
   */
  fairLockWaitTimeout?: number | undefined;
  /**
   * How many replicas must have an acquisition before it counts, for a Redis that may fail over. The others are given
   * back: a waiting caller goes on, and a single attempt rejects with `CannotAcquireLockError`, whose cause is a
   * `NotReplicatedError`. It needs a plain client, a cluster or a sentinel client of `redis` 6, a plain client or a
   * cluster of `redis` 5, or a client that `fromIoredis` made: WAIT goes over a connection of the registry's own, on a
   * cluster one for each master.
   * @default 0
   */
  minReplicas?: number | undefined;
  /**
   * ms; how long an acquisition waits for the `minReplicas`.
   * @default 100
   */
  replicaTimeout?: number | undefined;
  /**
   * A pub/sub connection of the caller's, for lock types whose waiters are notified. A pool needs one.
   * @default the client's `duplicate()`, made on the first contended wait; a cluster and a sentinel client listen
   * themselves
   */
  subscriber?: RedisSubscriber | undefined;
}

/** Options of a registry with their defaults filled in. */
export type RegistrySettings = {
  readonly [Name in keyof RedisLockRegistryOptions]-?: Name extends 'handOver' | 'subscriber'
    ? RedisLockRegistryOptions[Name]
    : Exclude<RedisLockRegistryOptions[Name], undefined>;
};

/** How many replicas have to have a lock, and how long they have for it. */
export type ReplicationSettings = Pick<RegistrySettings, 'minReplicas' | 'replicaTimeout'>;

/** The settings of the locks of one kind: of the registry's lock type, or shared ones. */
export type KindSettings = Omit<RegistrySettings, 'lockType'> & { readonly lockType: LockType | SharedKind };

/** Options of `LockRegistry.close`. */
export interface CloseOptions {
  /**
   * ms to wait for the holders, from 0 up.
   * @default 10_000
   */
  timeout?: number | undefined;
}

/** Options of `RedisLockRegistry.list`. */
export interface ListOptions {
  /**
   * A glob for the keys, as in SCAN: `*` any text, `?` one byte, `[ab]` one of them.
   * @default '*'
   */
  match?: string | undefined;
  /**
   * How many keys Redis looks at in one step: a larger one takes fewer requests, and occupies Redis for longer.
   * @default 1_000
   */
  count?: number | undefined;
}

/** Options of `LockRegistry.semaphore`. */
export interface SemaphoreOptions {
  /**
   * How many permits there are, over all processes: a whole number from 1. The number that was given last applies to all
   * waiters, once a call of its process begins to acquire.
   */
  permits: number;
}

/** Options of `LockRegistry.lead`. */
export interface LeadOptions {
  /**
   * Ends the call: it aborts the signal of the task of a leader, and the wait of a process that does not lead.
   * @default none
   */
  signal?: AbortSignal | undefined;
}

/** Options of `LockRegistry.once`. */
export interface OnceOptions<T = unknown> {
  /** ms for which the result is kept, from the end of the task on; longer where Redis stands still just then. */
  keepFor: number;
  /**
   * ms to wait for a result, above 0. A caller whose own task runs by then waits for that.
   * @default Infinity
   */
  waitTime?: number | undefined;
  /** Ends the wait of this caller. The task gets no abort: others may want its result. */
  signal?: AbortSignal | undefined;
  /**
   * Makes a text of the result, of at most 1 MiB.
   * @default JSON; `undefined` stays that
   */
  serialize?: ((result: T) => string | PromiseLike<string>) | undefined;
  /**
   * Makes the result of the text again, for each caller, also for the one whose task ran.
   * @default JSON
   */
  deserialize?: ((text: string) => T | PromiseLike<T>) | undefined;
}

/** Options of `LockRegistry.adopt`. */
export interface AdoptOptions {
  /**
   * ms, at least 5, or 30 for a lease that is renewed. The `minHold` that is left makes it longer.
   * @default that of the lease that was detached
   */
  ttl?: number | undefined;
  /**
   * Whether the watchdog renews the lease.
   * @default as it was
   */
  renew?: boolean | undefined;
}

/** Options of `LockRegistry.segmented`. */
export interface SegmentedLockOptions {
  /** The number of segments that the resource is split into, from 1 to 16 384: as many callers can work at a time. */
  segments: number;
  /**
   * Draws a number from 0 up to below 1. With a seeded generator the same segments are drawn again.
   * @default Math.random
   */
  random?: (() => number) | undefined;
}
