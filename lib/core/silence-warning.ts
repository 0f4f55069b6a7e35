import { type SilenceOfRedis, type WarningListener, warn } from '../api/warnings';
import { clock } from '../internal/clock';
import { BackgroundPauses, WakeTimer } from '../internal/timers';
import type { Connection } from '../redis/connection';
import { isServerAnswer, messageOf } from '../redis/failure';
import { SILENT, WARNED_AFTER } from '../redis/silence-times';
import type { Hold } from './hold';
import { isOverdue } from './watchdog';

/** ms between two looks whether the silence is over. */
const LOOK_EVERY = 500;

/** A lock that is held. */
interface HeldLock {
  readonly names: { readonly lock: string };
  readonly leases: readonly { readonly remaining: number; readonly isUnlocked: boolean; readonly hold: Hold }[];
}

/** What there is in a registry: its locks that are in use, and, for each caller that waits, the name of its lock. */
export interface InUse {
  readonly locks: readonly HeldLock[];
  readonly awaited: readonly string[];
}

/** What a silence affects. Times are on the monotonic clock. */
interface Affected extends Omit<SilenceOfRedis, 'duration' | 'isOver'> {
  /** The lock whose server has been silent for the longest time, and since when. */
  readonly silentLock: string | undefined;
  readonly silentSince: number | undefined;
  /** Callers have waited without an answer for long enough. */
  readonly isLong: boolean;
  /** When the lease that is the longest overdue was confirmed. */
  readonly overdueSince: number | undefined;
  /** What the last renewal of one of the leases failed with. */
  readonly failure: unknown;
}

interface Begun {
  /** On the monotonic clock. */
  readonly since: number;
  /** A lock on the server that is silent; `undefined`: it answers, but confirms no renewal. */
  readonly lock: string | undefined;
}

/**
 * Warns once when Redis is silent for a registry: after 3 s without an answer while callers wait, or when a lease could
 * not be renewed for a third of its ttl. And once more when that is over. Its timer runs in between only, and does not
 * keep the process alive.
 */
export class SilenceWarning {
  readonly #connection: Connection;
  readonly #inUse: () => InUse;
  readonly #askAboutAll: () => void;
  readonly #pauses = new BackgroundPauses();
  readonly #onWarning: WarningListener;
  readonly #timer = new WakeTimer(() => this.#look(), false);
  /** The silence that was warned of, until it is over. */
  #begun: Begun | undefined;
  #isReading = false;
  #isClosed = false;

  /** `askAboutAll` asks Redis about every hold. */
  constructor(connection: Connection, inUse: () => InUse, onWarning: WarningListener, askAboutAll: () => void) {
    this.#connection = connection;
    this.#askAboutAll = askAboutAll;
    this.#inUse = inUse;
    this.#onWarning = onWarning;
  }

  /** Redis seems to be silent. Warns if that is so when what has arrived was read. */
  notice(): void {
    if (this.#begun === undefined && !this.#isReading) void this.#readThenWarn();
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#isClosed = true;
    this.#timer.close();
    this.#pauses.close();
  }

  async #readThenWarn(): Promise<void> {
    this.#isReading = true;
    // After a block of the event loop, answers lie unread. The current turn may have passed the point of reading already.
    await clock.immediate();
    await clock.immediate();
    let now = clock.now();
    let affected = this.#count(now);
    if (!this.#isClosed && affected.silentSince === undefined && affected.overdueSince !== undefined) {
      // Redis answers with errors. Other leases are not due yet: all are asked about, so that the warning counts them too.
      this.#askAboutAll();
      await this.#pauses.pause(SILENT);
      now = clock.now();
      affected = this.#count(now);
    }
    this.#isReading = false;
    const { silentLock, silentSince, isLong, overdueSince, failure, ...counts } = affected;
    if (this.#isClosed || (!isLong && overdueSince === undefined)) return;
    const since = silentSince ?? overdueSince ?? now;
    this.#begun = { since, lock: silentLock };
    this.#timer.by(now + LOOK_EVERY, now);
    const silence: SilenceOfRedis = { ...counts, duration: now - since, isOver: false };
    const what = silentSince === undefined ? 'confirmed no renewal' : 'not answered';
    this.#warn(
      silence,
      `Redis has ${what} for ${seconds(silence.duration)}: ${describe(silence)}`,
      failure,
      silentLock,
    );
  }

  #look(): void {
    const now = clock.now();
    const { since, lock } = this.#begun as Begun;
    const { silentLock, silentSince, isLong, overdueSince, failure, ...counts } = this.#count(now);
    // Callers may have left without an answer.
    const isSilent = lock !== undefined && this.#connection.unansweredSince(lock) !== undefined;
    if (isSilent || silentSince !== undefined || overdueSince !== undefined) {
      this.#timer.by(now + LOOK_EVERY, now);
      return;
    }
    const duration = now - since;
    this.#begun = undefined;
    const message = `Redis answers again, ${seconds(duration)} after the first request that it did not answer`;
    this.#warn({ ...counts, duration, isOver: true }, message);
  }

  /** What is affected: the leases and waiters of servers that are silent, and leases that are not renewed. */
  #count(now: number): Affected {
    const { locks, awaited } = this.#inUse();
    let silentLock: string | undefined;
    let silentSince: number | undefined;
    const isSilent = (name: string): boolean => {
      const since = this.#connection.unansweredSince(name);
      if (since === undefined || now - since < SILENT) return false;
      if (silentSince === undefined || since < silentSince) [silentLock, silentSince] = [name, since];
      return true;
    };
    const waiters = awaited.filter(isSilent).length;
    const isLong = now - (silentSince ?? now) >= WARNED_AFTER;
    let leases = 0;
    let firstLeaseEndsIn: number | undefined;
    let overdueSince: number | undefined;
    let failure: unknown;
    for (const lock of locks) {
      for (const { hold, isUnlocked, remaining } of lock.leases) {
        const isLate = isOverdue(hold, now);
        if (isLate) overdueSince = Math.min(overdueSince ?? now, hold.sentAt);
        if (!isSilent(lock.names.lock) && !isLate && hold.failure === undefined) continue;
        // Its release is unanswered.
        if (isUnlocked) continue;
        failure ??= hold.failure;
        leases++;
        firstLeaseEndsIn = Math.min(firstLeaseEndsIn ?? remaining, remaining);
      }
    }
    return { leases, waiters, firstLeaseEndsIn, silentLock, silentSince, isLong, overdueSince, failure };
  }

  /**
   * `failure`: of a renewal. `lock`: one on the server that is silent. A client that emits no error may reject each command
   * about it at once.
   */
  #warn(silence: SilenceOfRedis, what: string, failure?: unknown, lock?: string): void {
    const connection = this.#connection;
    const { lastError = lock && connection.rejectionOf(lock) } = connection;
    const answer = isServerAnswer(failure) ? failure : undefined;
    const cause = silence.isOver ? undefined : (answer ?? lastError);
    const said = answer === undefined ? 'The last error of the client was' : 'Its last answer was';
    const message = cause === undefined ? what : `${what}. ${said}: ${messageOf(cause)}`;
    warn(this.#onWarning, { code: 'REDIS_SILENT', message, silence, ...(cause === undefined ? {} : { cause }) });
  }
}

function describe({ leases, waiters, firstLeaseEndsIn }: SilenceOfRedis): string {
  const counts = `this affects ${counted(leases, 'lease')} and ${counted(waiters, 'waiting caller')}`;
  return firstLeaseEndsIn === undefined ? counts : `${counts}; the first lease ends in ${seconds(firstLeaseEndsIn)}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
