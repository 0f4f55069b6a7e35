import type { Attributes, Counter, Histogram, Meter, UpDownCounter } from '@opentelemetry/api';
import type { AcquireMessage, HoldMessage, LockMessage, LostMessage } from '../api/messages';
import type { Observer } from './observer';

/** Which of few groups a key belongs to. */
export type Group = (key: string) => string | number | boolean | undefined;

/** s; from one round trip to a section of minutes. */
const BOUNDARIES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Metrics of leases. Re-entries are not counted. Keys are not attributes: each would be a series of its own. */
export class LockMetrics implements Observer {
  readonly #group: Group | undefined;
  readonly #waited: Histogram;
  readonly #hold: Histogram;
  readonly #acquisitions: Counter;
  readonly #lost: Counter;
  readonly #held: UpDownCounter;
  readonly #waiting: UpDownCounter;
  /** The calls and the sections that have begun, with their attributes. */
  readonly #waits = new Map<AcquireMessage, Attributes>();
  readonly #sections = new Map<HoldMessage, Attributes>();

  constructor(meter: Meter, group: Group | undefined) {
    this.#group = group;
    const seconds = { unit: 's', advice: { explicitBucketBoundaries: BOUNDARIES } };
    this.#waited = meter.createHistogram('redis_lock.wait.duration', {
      ...seconds,
      description: 'From a call of lock, tryLock or run to its outcome',
    });
    this.#hold = meter.createHistogram('redis_lock.hold.duration', {
      ...seconds,
      description: 'From the lease to its unlock or loss, or to the end of the task of run',
    });
    this.#acquisitions = meter.createCounter('redis_lock.acquisitions', {
      unit: '{call}',
      description: 'Calls of lock, tryLock and run by outcome',
    });
    this.#lost = meter.createCounter('redis_lock.lost', { unit: '{lease}', description: 'Lost leases by reason' });
    this.#held = meter.createUpDownCounter('redis_lock.held', {
      unit: '{lease}',
      description: 'Sections that run now',
    });
    this.#waiting = meter.createUpDownCounter('redis_lock.waiting', {
      unit: '{call}',
      description: 'Calls of lock, tryLock and run that have no outcome yet',
    });
  }

  acquireStarted(message: AcquireMessage): void {
    if (message.isReentry) return;
    const attributes = this.#attributesOf(message);
    this.#waits.set(message, attributes);
    this.#waiting.add(1, attributes);
  }

  acquireEnded(message: AcquireMessage): void {
    const attributes = this.#waits.get(message);
    if (attributes === undefined) return;
    this.#waits.delete(message);
    this.#waiting.add(-1, attributes);
    const { outcome, waited = 0 } = message;
    this.#acquisitions.add(1, { ...attributes, outcome });
    this.#waited.record(waited / 1_000, { ...attributes, outcome });
  }

  holdStarted(message: HoldMessage): void {
    if (message.isReentry) return;
    const attributes = this.#attributesOf(message);
    this.#sections.set(message, attributes);
    this.#held.add(1, attributes);
  }

  holdEnded(message: HoldMessage): void {
    const attributes = this.#sections.get(message);
    if (attributes === undefined) return;
    this.#sections.delete(message);
    this.#held.add(-1, attributes);
    const { held = 0, outcome } = message;
    this.#hold.record(held / 1_000, { ...attributes, outcome });
  }

  lost(message: LostMessage): void {
    this.#lost.add(1, { ...this.#attributesOf(message), reason: message.reason });
  }

  end(): void {
    for (const attributes of this.#waits.values()) this.#waiting.add(-1, attributes);
    for (const attributes of this.#sections.values()) this.#held.add(-1, attributes);
    this.#waits.clear();
    this.#sections.clear();
  }

  #attributesOf({ key, lockType, registryKey }: LockMessage): Attributes {
    const attributes: Attributes = { registry_key: registryKey, lock_type: lockType };
    const group = this.#group?.(key);
    if (group !== undefined) attributes.group = group;
    return attributes;
  }
}
