import { inspect } from 'node:util';
import type { Attributes, AttributeValue, Meter, Span, Tracer, UpDownCounter } from '@opentelemetry/api';
import { context, metrics, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  acquireChannel,
  holdChannel,
  lostChannel,
  releaseChannel,
  subscribeTo,
  warningChannel,
} from '../api/diagnostics';
import type { Lease } from '../api/distributed-lock';
import type {
  AcquireMessage,
  HoldMessage,
  LockMessage,
  LostMessage,
  ReleaseMessage,
  WarningMessage,
} from '../api/messages';
import { emitProcessWarning, warn } from '../api/warnings';
import { clock } from '../internal/clock';
import { type Check, type Checks, callback, checkedOptions, expected } from '../internal/validation';

/** Options of `instrumentLocks`. */
export interface InstrumentLocksOptions {
  /** @default a tracer named `redis-lock-registry`, with the version of this library, of the global tracer provider */
  tracer?: Tracer | undefined;
  /** @default a meter named `redis-lock-registry`, with the version of this library, of the global meter provider */
  meter?: Meter | undefined;
  /**
   * The attribute `group` of all metrics of a key. It should return few different values: each is a time series of its
   * own. `undefined`: without the attribute. Where it throws too, and a warning of the process says so once.
   *
   * @default no attribute: metrics do not tell keys apart
   */
  group?: ((key: string) => string | number | boolean | undefined) | undefined;
}

/** Ends the instrumentation. Spans that are open end, and `redis_lock.held` and `redis_lock.waiting` go back to 0. */
export interface LockInstrumentation extends Disposable {
  (): void;
}

const NAME = 'redis-lock-registry';
/** A test compares it with package.json. */
const VERSION = '0.1.0';

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
  const given = checkedOptions(CHECKS, options);
  const { tracer = trace.getTracer(NAME, VERSION), meter = metrics.getMeter(NAME, VERSION), group: groupOf } = given;
  const { acquisitions, held, hold, lost, waited, waiting, warnings } = metricsOf(meter);
  const waits = new Map<AcquireMessage, Begun>();
  const sections = new Map<HoldMessage, Begun>();
  /** The section of each lease, until it is released. */
  const leases = new Map<Lease, Begun>();
  let hasGroupFailed = false;

  const groupFor = (key: string): AttributeValue | undefined => {
    try {
      return groupOf?.(key);
    } catch (cause) {
      const message = `The option \`group\` threw ${textOf(cause)} for key "${key}": its metrics have no group`;
      if (!hasGroupFailed) warn(emitProcessWarning, { code: 'GROUP_FAILED', message, key, cause });
      hasGroupFailed = true;
      return undefined;
    }
  };

  const countedBy = ({ key, lockType, registryKey }: LockMessage): Attributes => {
    const group = groupFor(key);
    return { registry_key: registryKey, lock_type: lockType, ...(group !== undefined && { group }) };
  };

  /** A span of its own under the caller's, and a count of those that run. */
  const begin = (
    what: string,
    message: AcquireMessage | HoldMessage,
    running: UpDownCounter,
    more: Attributes,
  ): Begun => {
    const { isReentry, key, lockType, registryKey } = message;
    const attributes = {
      'redis_lock.registry_key': registryKey,
      'redis_lock.key': key,
      'redis_lock.type': lockType,
      'redis_lock.reentry': isReentry,
      ...more,
    };
    const counted = isReentry ? undefined : countedBy(message);
    if (counted !== undefined) running.add(1, counted);
    const span = tracer.startSpan(`${what} ${registryKey}`.trimEnd(), { attributes });
    return { span, running, counted, leases: new Set() };
  };

  /** Ends the span of a section that has ended, with the last of its leases. */
  const released = (lease: Lease): void => {
    const section = leases.get(lease);
    leases.delete(lease);
    section?.leases.delete(lease);
    if (section?.leases.size === 0 && section.endedAt !== undefined) section.span.end(section.endedAt);
  };

  const acquireEnded = (message: AcquireMessage): void => {
    const wait = waits.get(message);
    if (wait === undefined) return;
    waits.delete(message);
    const { span, counted } = wait;
    const { attempts, contendedAfter, contention, error, fencingToken, isHandedOver, waited: ms = 0 } = message;
    const outcome = message.outcome?.replaceAll(' ', '_');
    span.setAttributes({
      'redis_lock.outcome': outcome,
      'redis_lock.contention': contention,
      'redis_lock.attempts': attempts,
      'redis_lock.handed_over': isHandedOver,
      'redis_lock.fencing_token': fencingToken,
    });
    // The API takes ms of the monotonic clock as a time, too.
    if (contendedAfter !== undefined) {
      span.addEvent('waiting', { 'redis_lock.contention': contention }, clock.now() - (ms - contendedAfter));
    }
    if (outcome === 'acquired') span.addEvent('granted');
    // Contention is no error, and neither is an abort, which the caller asked for.
    if (outcome === 'failed') fail(span, error);
    span.end();
    if (!stopCounting(wait)) return;
    acquisitions.add(1, { ...counted, outcome });
    waited.record(ms / 1_000, { ...counted, outcome });
  };

  const holdStarted = (message: HoldMessage): void => {
    const { around, fencingToken, owner } = message;
    const more = { 'redis_lock.owner': owner, 'redis_lock.fencing_token': fencingToken };
    const section = begin('hold', message, held, more);
    sections.set(message, section);
    for (const lease of message.leases) {
      leases.set(lease, section);
      section.leases.add(lease);
    }
    const inSpan = trace.setSpan(context.active(), section.span);
    message.around = (task) => context.with(inSpan, around === undefined ? task : () => around(task));
  };

  const holdEnded = (message: HoldMessage): void => {
    const section = sections.get(message);
    if (section === undefined) return;
    sections.delete(message);
    const { span, counted } = section;
    const { error, held: ms = 0, outcome } = message;
    span.setAttribute('redis_lock.outcome', outcome ?? 'ended');
    if (error !== undefined) fail(span, error);
    if (section.leases.size > 0) section.endedAt = clock.now();
    else span.end();
    if (stopCounting(section)) hold.record(ms / 1_000, { ...counted, outcome });
  };

  const leaseLost = (message: LostMessage): void => {
    const { lease, reason } = message;
    const { endedAt, span } = leases.get(lease) ?? {};
    span?.addEvent('lost', { 'redis_lock.reason': reason }, endedAt);
    span?.setStatus({ code: SpanStatusCode.ERROR, message: `lost: ${reason}` });
    span?.setAttributes({ 'error.type': 'ERR_LOCK_LOST', 'redis_lock.outcome': 'lost' });
    released(lease);
    lost.add(1, { ...countedBy(message), reason });
  };

  const warned = ({ lockType, registryKey, warning: { code, silence } }: WarningMessage): void => {
    // The end of a silence is no trouble: an alert on the count would begin then.
    if (!silence?.isOver) warnings.add(1, { registry_key: registryKey, lock_type: lockType, code });
  };

  const stop = subscribeTo([
    [acquireChannel.start, (message: AcquireMessage) => waits.set(message, begin('lock', message, waiting, {}))],
    [acquireChannel.asyncEnd, acquireEnded],
    [holdChannel.start, holdStarted],
    [holdChannel.asyncEnd, holdEnded],
    [releaseChannel.asyncEnd, ({ lease }: ReleaseMessage) => released(lease)],
    [lostChannel, leaseLost],
    [warningChannel, warned],
  ]);

  /** No message comes any more: ends what has begun. */
  const end = (): void => {
    stop();
    for (const lease of [...leases.keys()]) released(lease);
    for (const begun of [...waits.values(), ...sections.values()]) {
      begun.span.end();
      stopCounting(begun);
    }
    for (const begun of [waits, sections, leases]) begun.clear();
  };
  return Object.assign(end, { [Symbol.dispose]: end });
}

const CHECKS: Checks<InstrumentLocksOptions> = {
  tracer: has('startSpan', 'a Tracer of OpenTelemetry'),
  meter: has('createHistogram', 'a Meter of OpenTelemetry'),
  group: callback,
};

/** By structure: an application may have the API of OpenTelemetry more than once. */
function has<T>(method: string, what: string): Check<T> {
  return (name, value) => {
    const found = (value as Record<string, unknown> | null)?.[method];
    if (typeof found !== 'function') throw new TypeError(expected(name, what, value));
    return value as T;
  };
}

/** s; from one round trip to a section of minutes. */
const BOUNDARIES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** A wait or a section that has begun. */
interface Begun {
  readonly span: Span;
  /** How many there are, and the attributes of its metrics; `undefined`: a re-entry, which is not counted. */
  readonly running: UpDownCounter;
  readonly counted: Attributes | undefined;
  /** The leases of the section that are not released. */
  readonly leases: Set<Lease>;
  /** A section has ended, and a release has not: that, or a renewal, may find that another lease was lost. */
  endedAt?: number;
}

function metricsOf(meter: Meter) {
  const seconds = (name: string, description: string) =>
    meter.createHistogram(name, { unit: 's', advice: { explicitBucketBoundaries: BOUNDARIES }, description });
  const total = (name: string, unit: string, description: string) => meter.createCounter(name, { unit, description });
  const now = (name: string, unit: string, description: string) =>
    meter.createUpDownCounter(name, { unit, description });
  return {
    waited: seconds('redis_lock.wait.duration', 'From a call of lock, tryLock or run to its outcome'),
    hold: seconds('redis_lock.hold.duration', 'From the lease to its unlock or loss, or to the end of the task of run'),
    acquisitions: total('redis_lock.acquisitions', '{call}', 'Calls of lock, tryLock and run by outcome'),
    lost: total('redis_lock.lost', '{lease}', 'Lost leases by reason'),
    warnings: total('redis_lock.warnings', '{warning}', 'Warnings by code'),
    held: now('redis_lock.held', '{lease}', 'Sections that run now'),
    waiting: now('redis_lock.waiting', '{call}', 'Calls of lock, tryLock and run that have no outcome yet'),
  };
}

/** Takes a call out of those that run. Returns whether it was counted. */
function stopCounting({ running, counted }: Begun): boolean {
  if (counted !== undefined) running.add(-1, counted);
  return counted !== undefined;
}

function fail(span: Span, error: unknown): void {
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  span.setAttribute('error.type', textOf(code ?? name ?? '_OTHER'));
  span.recordException(error instanceof Error ? error : textOf(error));
  span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : textOf(error) });
}

/** Whatever was thrown. An object without a prototype has no text: an error of ours would be uncaught in the process. */
function textOf(thrown: unknown): string {
  return thrown instanceof Error || typeof thrown !== 'object' ? String(thrown) : inspect(thrown);
}
