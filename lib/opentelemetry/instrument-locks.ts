import { type Meter, metrics, type Tracer, trace } from '@opentelemetry/api';
import type { AcquireMessage, HoldMessage, LostMessage } from '../api/messages';
import { acquireChannel, holdChannel, lostChannel } from '../diagnostics/channels';
import { type Check, callback, checkOptions, expected } from '../internal/validation';
import { type Group, LockMetrics } from './lock-metrics';
import { LockSpans } from './lock-spans';
import type { Observer } from './observer';

/** Options of `instrumentLocks`. */
export interface InstrumentLocksOptions {
  /** @default `trace.getTracer('redis-lock-registry')` of the global tracer provider */
  tracer?: Tracer;
  /** @default `metrics.getMeter('redis-lock-registry')` of the global meter provider */
  meter?: Meter;
  /**
   * The attribute `group` of all metrics of a key. It should return few different values: each is a time series of its
   * own. `undefined`: without the attribute.
   *
   * @default no attribute: metrics do not tell keys apart
   */
  group?: Group;
}

/** Ends the instrumentation. Spans that are open end, and `redis_lock.held` and `redis_lock.waiting` go back to 0. */
export interface LockInstrumentation extends Disposable {
  (): void;
}

/**
 * Publishes spans and metrics of all locks of this process by OpenTelemetry. Call it once, after the SDK has started
 * and before the first lock is used: what has begun before is not measured.
 *
 * @returns a function that ends it
 * @throws `TypeError` for an option that is unknown or invalid
 * @example
 * ```ts
 * import { instrumentLocks } from 'redis-lock-registry/opentelemetry';
 *
 * const end = instrumentLocks({ group: (key) => key.split(':')[0] });
 * ```
 */
export function instrumentLocks(options: InstrumentLocksOptions = {}): LockInstrumentation {
  checkOptions(CHECKS, options);
  const { tracer = trace.getTracer(NAME), meter = metrics.getMeter(NAME), group } = options;
  const observers = [new LockSpans(tracer), new LockMetrics(meter, group)];
  const unsubscribe = observe(observers);
  const end = (): void => {
    unsubscribe();
    for (const observer of observers) observer.end();
  };
  return Object.assign(end, { [Symbol.dispose]: end });
}

const NAME = 'redis-lock-registry';

const CHECKS = {
  tracer: has('startSpan', 'a Tracer of OpenTelemetry'),
  meter: has('createHistogram', 'a Meter of OpenTelemetry'),
  group: callback,
};

/** By structure: an application may have the API of OpenTelemetry more than once. */
function has(method: string, what: string): Check<void> {
  return (name, value) => {
    const found = (value as Record<string, unknown> | null)?.[method];
    if (typeof found !== 'function') throw new TypeError(expected(name, what, value));
  };
}

function observe(observers: readonly Observer[]): () => void {
  const subscriptions = [
    [acquireChannel.start, (message: AcquireMessage) => notifyEach((one) => one.acquireStarted(message))],
    [acquireChannel.asyncEnd, (message: AcquireMessage) => notifyEach((one) => one.acquireEnded(message))],
    [holdChannel.start, (message: HoldMessage) => notifyEach((one) => one.holdStarted(message))],
    [holdChannel.asyncEnd, (message: HoldMessage) => notifyEach((one) => one.holdEnded(message))],
    [lostChannel, (message: LostMessage) => notifyEach((one) => one.lost(message))],
  ] as const;
  const notifyEach = (notify: (observer: Observer) => void): void => {
    for (const observer of observers) notify(observer);
  };
  for (const [channel, listener] of subscriptions) channel.subscribe(listener as (message: unknown) => void);
  return () => {
    for (const [channel, listener] of subscriptions) channel.unsubscribe(listener as (message: unknown) => void);
  };
}
