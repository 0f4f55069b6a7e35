import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import { CapturedContext, clock, inBackground } from '../internal/clock';
import type { Lease } from './distributed-lock';
import { type LockLostError, LockQueueFullError, RegistryClosedError } from './errors';
import type { LockType } from './lock-types';
import type { AcquireMessage, HoldMessage, LockMessage, ReleaseMessage, WarningMessage } from './messages';
import type { WarningListener } from './warnings';

/*
 * What the library publishes by Node's diagnostics_channel. Each place asks first whether anybody has subscribed, and
 * makes no message otherwise. Node catches what a subscriber throws, and reports it as an uncaught exception of the
 * process: the lock goes on.
 */

export const acquireChannel = tracingChannel<AcquireMessage, AcquireMessage>('redis-lock-registry:acquire');
export const holdChannel = tracingChannel<HoldMessage, HoldMessage>('redis-lock-registry:hold');
export const releaseChannel = tracingChannel<ReleaseMessage, ReleaseMessage>('redis-lock-registry:release');
export const lostChannel = channel('redis-lock-registry:lost');
export const renewedChannel = channel('redis-lock-registry:renewed');
export const warningChannel = channel('redis-lock-registry:warning');

/** Node 20 has no `hasSubscribers` of a tracing channel in all of its versions. */
export function isTraced<T extends object>(traced: TracingChannel<T, T>): boolean {
  const { start, end, asyncStart, asyncEnd, error } = traced;
  return (
    start.hasSubscribers ||
    asyncEnd.hasSubscribers ||
    end.hasSubscribers ||
    asyncStart.hasSubscribers ||
    error.hasSubscribers
  );
}

/** Subscribes each listener to its channel. Returns what ends that. */
export function subscribeTo(
  listeners: readonly (readonly [Pick<Channel, 'subscribe' | 'unsubscribe'>, (message: never) => void])[],
): () => void {
  for (const [to, listener] of listeners) to.subscribe(listener as (message: unknown) => void);
  return () => {
    for (const [to, listener] of listeners) to.unsubscribe(listener as (message: unknown) => void);
  };
}

/** Outside the async context of the caller whose turn it happens to be. For a channel with subscribers. */
export function publish<T extends object>(to: Channel, message: T): void {
  inBackground(() => to.publish(message));
}

/**
 * The listener of the application for warnings, and the channel for them. It runs in the async context in which the
 * registry was made, and never in that of a caller.
 */
export function publishingWarnings(
  registryKey: string,
  lockType: LockType,
  onWarning: WarningListener,
): WarningListener {
  const context = new CapturedContext();
  return (warning) => {
    if (warningChannel.hasSubscribers) publish<WarningMessage>(warningChannel, { registryKey, lockType, warning });
    return context.runInAsyncScope(() => onWarning(warning));
  };
}

/** What every message about the lock of a key says. */
export function lockMessage({ registryKey, lockType }: Omit<LockMessage, 'key'>, key: string): LockMessage {
  return { registryKey, key, lockType };
}

/** What a call that acquires fills in. */
interface TracedWait {
  readonly startedAt: number;
  readonly signal: AbortSignal | undefined;
  trace: AcquireMessage | undefined;
}

/** Publishes the start and the end of a call that acquires. */
export function traceAcquire<T extends Lease>(
  lock: LockMessage,
  wait: TracedWait,
  waitTime: number,
  isReentry: boolean,
  acquire: () => Promise<T | null>,
): Promise<T | null> {
  const message: AcquireMessage = {
    ...lock,
    ...{ waitTime, isReentry, contention: 'none', contendedAfter: undefined, attempts: 0, isHandedOver: false },
    ...{ waited: undefined, outcome: undefined, fencingToken: undefined },
  };
  wait.trace = message;
  return acquireChannel.tracePromise(async () => {
    try {
      const lease = await acquire();
      message.outcome = lease === null ? 'timed out' : 'acquired';
      message.fencingToken = lease?.fencingToken;
      return lease;
    } catch (error) {
      const isAbort = wait.signal?.aborted || error instanceof RegistryClosedError;
      message.outcome = isAbort ? 'aborted' : error instanceof LockQueueFullError ? 'timed out' : 'failed';
      throw error;
    } finally {
      message.waited = clock.now() - wait.startedAt;
    }
  }, message);
}

/** The caller has to wait. */
export function noteContention({ trace, startedAt }: TracedWait, contention: 'local' | 'remote'): void {
  if (trace === undefined) return;
  trace.contention = contention;
  trace.contendedAfter ??= clock.now() - startedAt;
}

/** The lease of a section. Of several keys, `leases` are those of the keys. */
interface TracedLease extends Lease {
  readonly owner: string;
  readonly isReentry: boolean;
  readonly leases?: readonly TracedLease[];
  publishEnd?: ((loss?: LockLostError) => void) | undefined;
  checkLost(): boolean;
}

function holdMessage(lock: LockMessage, lease: TracedLease): HoldMessage {
  const { fencingToken, isReentry, leases: all = [lease], owner } = lease;
  // Nothing else is published of a lease that was lost before.
  const leases = all.filter((one) => !one.isReentry && !one.checkLost());
  return { ...lock, isReentry, owner, leases, fencingToken, held: undefined, outcome: undefined };
}

/** Runs the task of `run` as a section: what it starts belongs to it. */
export function traceRun<T>(
  lock: LockMessage,
  lease: TracedLease & { lossError(): Error },
  task: () => Promise<T>,
): Promise<T> {
  const message = holdMessage(lock, lease);
  const startedAt = clock.now();
  return holdChannel.tracePromise(async () => {
    try {
      return await (message.around === undefined ? task() : message.around(task));
    } finally {
      message.held = clock.now() - startedAt;
      message.outcome = lease.checkLost() ? 'lost' : 'ended';
      // The error of a task replaces it.
      if (message.outcome === 'lost') message.error = lease.lossError();
    }
  }, message);
}

/**
 * The section of a lease that was taken with `lock` or `tryLock`: it ends by `publishEnd`, in the async context in which it
 * began, also where another caller finds that the lease was lost. A subscriber may unlock the lease.
 */
export function traceHold(lock: LockMessage, lease: TracedLease): void {
  const message = holdMessage(lock, lease);
  const startedAt = clock.now();
  const context = new CapturedContext();
  lease.publishEnd = context.bind((loss) => {
    message.held = clock.now() - startedAt;
    message.outcome = loss === undefined ? 'ended' : 'lost';
    if (loss !== undefined) {
      message.error = loss;
      holdChannel.error.publish(message);
    }
    holdChannel.asyncStart.publish(message);
    holdChannel.asyncEnd.publish(message);
  });
  holdChannel.start.publish(message);
  holdChannel.end.publish(message);
}
