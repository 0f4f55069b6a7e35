import type { Connection } from './connection';
import {
  answerOf,
  isClientClosed,
  isNotExecuted,
  isServerAnswer,
  isWithoutEffect,
  mayHaveWritten,
  NOT_ASKED,
  NotSentError,
} from './failure';

/** What became of the attempts to acquire a lock: whether one came to Redis, and whether one may be executed later. */
export class Attempts {
  readonly #connection: Connection;
  /** `connectionEpoch` of the connection before the first attempt. */
  readonly #epoch: number | undefined;
  /** `disruptions` of the connection when the last attempt was about to be sent. */
  #disruptions = 0;
  /** The client was closed when it was given the last attempt: where it says so, nothing was sent. */
  #wasClientClosed = false;
  /** How many attempts have an outcome that is not known yet. */
  inDoubt = 0;
  /** When the outcome of all attempts is known; `undefined`: none was in doubt. */
  settled: Promise<unknown> | undefined;
  /** An attempt came to Redis, or may have. What was held back until its time was over leaves nothing. */
  reachedRedis: boolean;
  /**
   * An attempt may still be executed, and no answer will show it: its connection was lost before Redis answered, though
   * the client may have sent it again.
   */
  lostTrack = false;

  /** A release was not answered, or may have stopped half-way: it may have been executed. */
  mayBeGivenBack = false;

  /** `wereAnswered`: they were made before, and what became of each is known. */
  constructor(connection: Connection, wereAnswered = false) {
    this.#connection = connection;
    this.#epoch = connection.connectionEpoch;
    this.reachedRedis = wereAnswered;
  }

  /** An attempt is about to be sent. */
  sending(): void {
    this.#disruptions = this.#connection.disruptions;
    this.#wasClientClosed = this.#connection.isClientClosed;
  }

  /**
   * The connection was lost after the send, and the client may have sent again: an answer may be that of the second copy,
   * and the first may still run.
   */
  private get wasDisrupted(): boolean {
    return this.#connection.disruptions !== this.#disruptions;
  }

  /** Commands that are sent from now on arrive after all attempts: they go over the same connection. */
  get isInOrder(): boolean {
    return this.#epoch !== undefined && this.#epoch === this.#connection.connectionEpoch;
  }

  /** The last attempt was answered. */
  answered(): void {
    this.reachedRedis = true;
    if (this.wasDisrupted) this.lostTrack = true;
  }

  /** The server skipped the last attempt: see NOT_ASKED. Of a command that was sent again, the first copy may still run. */
  skipped(): void {
    if (this.wasDisrupted) this.answered();
  }

  /** The last attempt failed. */
  failed(error: unknown, attempt: Promise<unknown>): void {
    const isUnsent = error instanceof NotSentError || (this.#wasClientClosed && isClientClosed(error));
    // If the client sent again, a refusal of the second copy does not say whether the first ran.
    if (isUnsent || (isNotExecuted(error) && !this.wasDisrupted)) return;
    const isAnswer = isServerAnswer(error);
    if (isAnswer) this.answered();
    if (!isAnswer || mayHaveWritten(error)) this.doubt(attempt);
  }

  /** A try to give it back, or to pass it on, failed. */
  giveBackFailed(error: unknown): void {
    if (isWithoutEffect(error)) return;
    if (!isServerAnswer(error) || mayHaveWritten(error)) this.mayBeGivenBack = true;
  }

  /** The outcome of the last attempt is not known: it failed without an answer, or its caller left before the answer. */
  doubt(attempt: Promise<unknown>): void {
    const disruptions = this.#disruptions;
    this.inDoubt++;
    const settled = outcomeOf(attempt).then((outcome) => {
      this.inDoubt--;
      const isCopy = this.#connection.disruptions !== disruptions;
      if (outcome === 'not sent' || (outcome === 'skipped' && !isCopy)) return;
      this.reachedRedis = true;
      if (outcome === 'lost' || isCopy) this.lostTrack = true;
    });
    this.settled = Promise.all([this.settled, settled]);
  }

  /** The outcome of each was known at once: no owner value of those that were refused is in Redis, or can get there. */
  get wereNeverInDoubt(): boolean {
    return this.settled === undefined && !this.lostTrack;
  }

  /** Each attempt was answered: what Redis says from now on is final. */
  get areCertain(): boolean {
    return this.inDoubt === 0 && !this.lostTrack;
  }
}

/** Resolves when it is known whether Redis answered. An answer that comes late counts, a lost connection does not. */
async function outcomeOf(attempt: Promise<unknown>): Promise<'answered' | 'skipped' | 'lost' | 'not sent'> {
  try {
    await answerOf(attempt);
    return 'answered';
  } catch (error) {
    if (error === NOT_ASKED) return 'skipped';
    if (error instanceof NotSentError) return 'not sent';
    return isServerAnswer(error) ? 'answered' : 'lost';
  }
}
