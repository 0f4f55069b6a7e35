import { type Attributes, context, type Span, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import type { AcquireMessage, HoldMessage, LockMessage, LostMessage } from '../api/messages';
import { clock } from '../internal/clock';
import type { Observer } from './observer';

/** A span of its own for each wait and each section, both under the caller's. */
export class LockSpans implements Observer {
  readonly #tracer: Tracer;
  readonly #waits = new Map<AcquireMessage, { readonly span: Span; readonly startedAt: number }>();
  readonly #sections = new Map<HoldMessage, Span>();
  /** The sections of leases, without their re-entries, by owner. */
  readonly #held = new Map<string, Span>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  acquireStarted(message: AcquireMessage): void {
    const { isReentry } = message;
    const attributes = { ...attributesOf(message), 'redis_lock.reentry': isReentry };
    const span = this.#tracer.startSpan(`lock ${message.registryKey}`, { attributes });
    this.#waits.set(message, { span, startedAt: clock.now() });
  }

  acquireEnded(message: AcquireMessage): void {
    const wait = this.#waits.get(message);
    if (wait === undefined) return;
    this.#waits.delete(message);
    const { span, startedAt } = wait;
    const { attempts, contendedAfter, contention, error, fencingToken, isHandedOver, outcome } = message;
    span.setAttributes({
      'redis_lock.outcome': outcome,
      'redis_lock.contention': contention,
      'redis_lock.attempts': attempts,
      'redis_lock.handed_over': isHandedOver,
      'redis_lock.fencing_token': fencingToken,
    });
    // The API takes ms of the monotonic clock as a time, too.
    if (contendedAfter !== undefined) {
      span.addEvent('waiting', { 'redis_lock.contention': contention }, startedAt + contendedAfter);
    }
    if (outcome === 'acquired') span.addEvent('granted');
    // Contention is no error, and neither is an abort, which the caller asked for.
    if (outcome === 'failed') fail(span, error);
    span.end();
  }

  holdStarted(message: HoldMessage): void {
    const { fencingToken, isReentry, owner } = message;
    const attributes = {
      ...attributesOf(message),
      'redis_lock.reentry': isReentry,
      'redis_lock.owner': owner,
      'redis_lock.fencing_token': fencingToken,
    };
    const span = this.#tracer.startSpan(`hold ${message.registryKey}`, { attributes });
    this.#sections.set(message, span);
    if (!isReentry) this.#held.set(owner, span);
    const inSpan = trace.setSpan(context.active(), span);
    const { around } = message;
    message.around = (task) => context.with(inSpan, around === undefined ? task : () => around(task));
  }

  holdEnded(message: HoldMessage): void {
    const span = this.#sections.get(message);
    if (span === undefined) return;
    this.#sections.delete(message);
    if (!message.isReentry) this.#held.delete(message.owner);
    span.setAttribute('redis_lock.outcome', message.outcome ?? 'ended');
    if (message.error !== undefined) fail(span, message.error);
    span.end();
  }

  lost({ owner, reason }: LostMessage): void {
    const span = this.#held.get(owner);
    span?.addEvent('lost', { 'redis_lock.reason': reason });
    span?.setStatus({ code: SpanStatusCode.ERROR, message: `lost: ${reason}` });
  }

  end(): void {
    for (const { span } of this.#waits.values()) span.end();
    for (const span of this.#sections.values()) span.end();
    this.#waits.clear();
    this.#sections.clear();
    this.#held.clear();
  }
}

function attributesOf({ key, lockType, registryKey }: LockMessage): Attributes {
  return { 'redis_lock.registry_key': registryKey, 'redis_lock.key': key, 'redis_lock.type': lockType };
}

function fail(span: Span, error: unknown): void {
  span.recordException(error instanceof Error ? error : String(error));
  span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
}
