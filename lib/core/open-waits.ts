import type { LockState } from '../api/distributed-lock';
import { heldByOthers, keyEnd, registryClosed } from '../api/errors';
import {
  acquiredAtIn,
  isDetached,
  isKept,
  isNamedByDefault,
  isOwner,
  isWithoutHolder,
  nameIn,
} from '../api/owner-name';
import { inWords, type LockHolder, type WarningListener, warn } from '../api/warnings';
import { clock } from '../internal/clock';
import { LinkedList } from '../internal/linked-list';
import { BackgroundPauses, WakeTimer } from '../internal/timers';
import type { Connection } from '../redis/connection';
import { SILENT } from '../redis/silence-times';
import { circleOf, circleWith, describeCircle, mayWaitInCircle } from './deadlocks';
import type { QueuedLock, Wait, WaitedLock } from './wait';

/** ms; waits that become long within this time are reported together, at its end. */
const TOGETHER = 100;

/** A lock of the registry, which this process may hold. */
type OwnLock = QueuedLock & Pick<WaitedLock, 'heldFor'>;

/**
 * The calls of a registry that are still acquiring: what `close` interrupts. A warning comes of every wait that is longer
 * than `warnAfter`, and again when the wait is twice as long, and says who holds the lock. One timer for a registry,
 * which runs only while there are waits, and does not keep the process alive.
 */
export class OpenWaits {
  /** Not in the order of their starts: a nested call whose scope has ended joins late. */
  readonly #waits = new LinkedList<Wait>();
  /** Waits of callers inside a scope that holds the lock. */
  readonly #reentries = new LinkedList<Wait>();
  /** ms; `Infinity` once no warning is to come any more. */
  #warnAfter: number;
  readonly #together: number;
  readonly #onWarning: WarningListener;
  readonly #connection: Connection;
  readonly #inUse: () => readonly OwnLock[];
  readonly #timer = new WakeTimer(() => this.#tick(), false);
  readonly #pauses = new BackgroundPauses();
  isClosed = false;
  #whenNone: (() => void) | undefined;
  readonly #leaveCircles: () => void;

  /** `warnAfter` in ms. `inUse`: the locks of the registry that may be held. */
  constructor(warnAfter: number, onWarning: WarningListener, connection: Connection, inUse: () => readonly OwnLock[]) {
    this.#warnAfter = warnAfter;
    this.#inUse = inUse;
    this.#connection = connection;
    this.#together = Math.min(TOGETHER, warnAfter / 10);
    this.#onWarning = onWarning;
    this.#leaveCircles = mayWaitInCircle(this);
  }

  /** Those of callers that are still acquiring, also inside a scope that holds the lock. */
  get open(): Wait[] {
    return [...this.#waits, ...this.#reentries];
  }

  /** From now on `close` interrupts the wait. Throws when the registry is closed, or it was interrupted before. */
  begin(wait: Wait): void {
    if (this.isClosed) throw registryClosed(wait.key);
    wait.throwIfInterrupted();
    this.#waits.append(wait);
    this.#watch(wait);
  }

  end(wait: Wait): void {
    this.#waits.remove(wait);
    if (this.#whenNone !== undefined && this.#waits.first === undefined) this.#whenNone();
  }

  /** `close` does not interrupt it: the lock is held, and comes back to the caller inside. */
  beginReentry(wait: Wait): void {
    this.#reentries.append(wait);
    this.#watch(wait);
  }

  endReentry(wait: Wait): void {
    this.#reentries.remove(wait);
  }

  /** The names of the locks that callers wait for, once for each caller. */
  get awaited(): string[] {
    return [...this.#waits].flatMap(({ lock, isOver }) => (lock === undefined || isOver ? [] : [lock.names.lock]));
  }

  /** Interrupts all waits, and refuses later ones. */
  close(): void {
    this.isClosed = true;
    for (const wait of [...this.#waits]) wait.interrupt(registryClosed(wait.key));
  }

  /** Resolves when no wait is left. */
  async none(): Promise<void> {
    if (this.#waits.first === undefined) return;
    await new Promise<void>((resolve) => (this.#whenNone = resolve));
  }

  /** Leaves no timer behind, also for a nested call of a task that is still running. */
  stopWarning(): void {
    this.#warnAfter = Number.POSITIVE_INFINITY;
    this.#timer.close();
    this.#pauses.close();
    this.#leaveCircles();
  }

  #watch({ startedAt }: Wait): void {
    this.#timer.by(startedAt + this.#warnAfter + this.#together, startedAt);
  }

  #tick(): void {
    const now = clock.now();
    const long = new Map<WaitedLock | undefined, Wait[]>();
    let next = Number.POSITIVE_INFINITY;
    for (const waits of [this.#waits, this.#reentries]) {
      for (const wait of waits) {
        const { reportAt, startedAt } = wait;
        const left = (reportAt ?? startedAt + this.#warnAfter) - now;
        next = Math.min(next, left > 0 ? left : now - startedAt);
        if (left > 0) continue;
        wait.reportAt = now + (now - startedAt);
        const those = long.get(wait.lock);
        if (those === undefined) long.set(wait.lock, [wait]);
        else those.push(wait);
      }
    }
    this.#timer.by(now + next + this.#together, now);
    for (const [lock, waits] of long) void this.#report(lock, waits);
  }

  async #report(lock: WaitedLock | undefined, waits: readonly Wait[]): Promise<void> {
    const isSilent = (): boolean => this.#silenceAbout(lock) >= SILENT;
    // The warning does not wait for a Redis that is silent.
    const inspected = lock === undefined || isSilent() ? undefined : lock.inspect().catch(() => undefined);
    const state = inspected && (await this.#pauses.within(SILENT, inspected));
    const circle = lock === undefined || isSilent() ? undefined : this.#circleWith(lock, state, waits);
    const known = circle && (await this.#pauses.within(SILENT, circle));
    const [first] = waits.filter((wait) => !wait.isOver);
    if (first === undefined || this.#warnAfter === Number.POSITIVE_INFINITY) return;
    const { key } = first;
    const holder = lock && holderOf(lock, state, waits);
    const waited = inWords(clock.now() - first.startedAt);
    const callers = waits.length === 1 ? 'A caller has' : `${waits.length} callers have`;
    const silence = isSilent() ? `. Redis has not answered for ${inWords(this.#silenceAbout(lock))}` : '';
    const hint = known === undefined ? hintAt(waits, holder) : `. ${known}`;
    const value = (state ?? lock?.lastHolder)?.owner;
    const described = describe(holder, state, value);
    const message = `${callers} waited for lock "${key}" for ${waited}: ${described}${hint}${silence}`;
    warn(this.#onWarning, { code: 'LONG_WAIT', message, key, ...(holder === undefined ? {} : { holder }) });
  }

  /** A lock that was taken by `lock()` before a caller began to wait may be held by that caller. */
  #circleWith(lock: WaitedLock, state: LockState | undefined, waits: readonly Wait[]): Promise<string | undefined> {
    const { owner } = state ?? lock.lastHolder ?? {};
    const open = waits.filter(({ isOver }) => !isOver);
    const shortest = clock.now() - Math.max(...open.map(({ startedAt }) => startedAt));
    const perhaps = this.#inUse().filter(({ heldFor = 0, mostPermits }) => mostPermits === 1 && heldFor >= shortest);
    const surely = open.flatMap(({ scope }) => scope?.heldAlone ?? []);
    return circleWith(owner, lock, surely, perhaps, SILENT);
  }

  /** ms for which the server of the lock has not answered. */
  #silenceAbout(lock: WaitedLock | undefined): number {
    const now = clock.now();
    return now - ((lock && this.#connection.unansweredSince(lock.names.lock)) ?? now);
  }
}

/** By the state, or, where that is not known, by the last answer. */
function holderOf(lock: WaitedLock, state: LockState | undefined, waits: readonly Wait[]): LockHolder | undefined {
  const { owner, remaining } = state ?? lock.lastHolder ?? {};
  if (owner === undefined || remaining === undefined) return undefined;
  const name = nameIn(owner);
  const isAroundCaller = waits.some(({ scope }) => scope?.isInside(lock.names.lock));
  const isOurs = state?.isOurs ?? lock.heldFor !== undefined;
  const isThisProcess = isOurs || isAroundCaller || isNamedByDefault(name);
  const heldFor = isOurs ? lock.heldFor : undefined;
  return { owner: isOwner(owner) ? owner : undefined, name, remaining, isThisProcess, heldFor, isAroundCaller };
}

/** `value`: that of the key, which may be a secret. */
function describe(holder: LockHolder | undefined, state: LockState | undefined, value = ''): string {
  if (holder === undefined) return state === undefined ? 'its holder is not known' : 'it is free by now';
  const { owner, name = 'another client', remaining, isThisProcess, heldFor } = holder;
  const lately = state === undefined ? ' by the last answer' : '';
  if (owner === undefined) return `${heldByOthers(value)}${lately}, and ${keyEnd(remaining)}`;
  if (isKept(owner)) return `${name} unlocked it, and its minHold ends in ${Math.round(remaining)} ms`;
  if (isDetached(owner)) return `${name} detached its lease, and ${keyEnd(remaining)}`;
  const since = heldFor === undefined ? '' : `, for ${Math.round(heldFor)} ms`;
  const who = isThisProcess ? `this process holds it${since}` : `${name} holds it`;
  return `${who}${lately} (owner ${owner}, ${keyEnd(remaining)})`;
}

/** What may be wrong, where something is known: a lock that was taken after the caller began to wait is just busy. */
function hintAt(waits: readonly Wait[], holder: LockHolder | undefined): string {
  if (holder?.owner === undefined || isWithoutHolder(holder.owner)) return '';
  if (holder.isAroundCaller) return '. The caller is inside a `run` that holds the lock: this may be a deadlock';
  const now = clock.now();
  for (const wait of waits) {
    const circle = wait.isOver ? undefined : circleOf(wait);
    if (circle !== undefined) return `. ${describeCircle(circle)}`;
  }
  const acquiredAt = acquiredAtIn(holder.owner);
  const since = acquiredAt === undefined ? Number.POSITIVE_INFINITY : clock.wallNow() - acquiredAt;
  const heldFor = holder.heldFor ?? since;
  const longer = waits.filter(({ isOver, startedAt }) => !isOver && heldFor >= now - startedAt);
  if (longer.length === 0) return '';
  if (holder.isThisProcess) return '. If the caller is the holder, this is a deadlock: only `run` is re-entrant';
  const held = longer.find(({ scope }) => (scope?.heldKeys.length ?? 0) > 0)?.scope?.heldKeys ?? [];
  if (held.length === 0) return '';
  const keys = held.map((key) => `"${key}"`).join(', ');
  return `. The caller is inside a \`run\` that holds ${keys}: if ${holder.name ?? 'that client'} waits for that, this is a deadlock`;
}
