import type { LockState } from '../api/distributed-lock';
import type { SharedKind } from '../api/lock-types';
import type { Connection } from '../redis/connection';
import type { LockNames } from '../redis/names';
import type { LockProtocol, NotHeld } from './protocol';

/** What an inspection of a lock found. `owner`: `undefined`: the lock is free. */
export interface Inspected extends Omit<LockState, 'held' | 'name' | 'isOurs' | 'acquiredAt'> {
  /** Where the owner value does not say it. */
  readonly acquiredAt?: number;
  /** All that hold a shared lock, each after its kind and a colon, with spaces between them. */
  readonly owners?: string;
}

/** What a forced unlock found. */
export interface Forced extends Inspected {
  /** How many heard that it was taken from them; `undefined`: nobody did, as far as a node of a cluster knows. */
  readonly heard?: number | undefined;
  /** Nothing was done: the owner that was found had lost the lock before it was taken, and another one has it. */
  readonly isOthersNow?: true;
}

/** Inspects locks, and unlocks them by force. Timeouts are in ms. */
export interface LockInspector {
  inspect(names: LockNames, timeout: number): Promise<Inspected>;
  /**
   * Ends the hold of the owner that it finds, and of nobody who comes after it, though the client repeats a command.
   * Resolves to what was found before; to a free lock where nothing was done, as that owner had left it. `by`: an owner value
   * of the registry that does it, which the holder learns.
   */
  forceUnlock(names: LockNames, timeout: number, by: string): Promise<Forced>;
  /** Whether a caller of the registry with this id stands in the queue. Absent: there is no queue that would say it. */
  isAwaitedBy?(id: string, names: LockNames, timeout: number): Promise<boolean>;
}

/** A script of the application's, and what it is called with. */
export interface EvalCall {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** The script ran while the lock was the owner's; or it was not, and nothing was done. */
export type EvalResult =
  | { readonly held: true; readonly reply: unknown }
  | { readonly held: false; readonly state: NotHeld };

/** Runs scripts of the application's, each only if the lock is still the owner's at that moment. */
export interface ScriptRunner {
  /** Throws `RangeError` for keys that cannot be used in one script with the lock. */
  assertPlaced(names: LockNames, call: EvalCall): void;
  /** `timeout` in ms. */
  run(names: LockNames, owner: string, call: EvalCall, timeout: number): Promise<EvalResult>;
}

/** Learns that a result was stored. */
export interface ResultWatch {
  /** ms after which to look again. */
  readonly pause: number;
  /** Calls back when a result may be there. Returns what stops it. */
  on(wake: () => void): () => void;
}

/** The names of what belongs to one result of `once`. */
export interface ResultKeys {
  readonly result: string;
  /** The mark of the last `forget` that found the lock held: a task may have begun before it. */
  readonly forgotten: string;
  readonly lock: string;
}

/** The results of `once`. Timeouts are in ms. */
export interface Results {
  /** `undefined`: there is none. */
  read(name: string, timeout: number): Promise<string | undefined>;
  /** For a task that is to run under the lock: the result, and the mark of the last `forget`, or ''. */
  begin(keys: ResultKeys, timeout: number): Promise<{ readonly text: string | undefined; readonly mark: string }>;
  /** Resolves to whether there was one. `mark`: one that was never used before. */
  forget(keys: ResultKeys, mark: string, timeout: number): Promise<boolean>;
  watch(name: string): ResultWatch;
}

/** The semaphores and read/write locks of one registry. */
export interface SharedBackend {
  readonly inspector: LockInspector;
  /** See `LockBackend.open`. */
  open(kind: SharedKind, names: LockNames): LockProtocol;
  leaseScripts(kind: SharedKind): ScriptRunner;
}

/**
 * How registries tell each other of their locks. A message is a hint: it may be lost, come late, or be of a stranger. Timeouts
 * are in ms.
 */
export interface Inboxes {
  /** All who hear a message are counted: not on a cluster. */
  readonly countsAll: boolean;
  /**
   * Opens that of the registry that has this owner value: messages come until the registry is closed. Calls `missed` where
   * some may not have come. Resolves when it is open, or cannot be opened now.
   */
  open(owner: string, receive: (message: string) => void, missed: () => void): Promise<void>;
  /** To the registry of an owner value, about the lock of this name. Resolves to how many heard it. */
  send(owner: string, message: string, lock: string, timeout: number): Promise<number>;
}

/**
 * Where the locks of one registry are: in Redis, or in memory. Everything else (the cache, leases and their renewal,
 * scopes, local queues, closing) is the same for all.
 */
export interface LockBackend {
  readonly connection: Connection;
  readonly inspector: LockInspector;
  readonly leaseScripts: ScriptRunner;
  readonly shared: SharedBackend;
  readonly results: Results;
  readonly inboxes: Inboxes;
  /**
   * The protocol of one lock. Throws `RangeError` if the keys that belong to the lock could not share its hash slot.
   */
  open(names: LockNames): LockProtocol;
  /**
   * The names of keys that begin with `prefix`, and go on as the glob `match` says, step by step. A name may come more
   * than once, and may be of a key that is no lock. `count`: about how many keys to look at in a step. `timeout`: ms
   * for a step. Throws `TypeError` where that is not possible.
   */
  keys(prefix: string, match: string, count: number, timeout: number): AsyncIterable<string[]>;
  /**
   * For an error about a key of the wrong type: an error that says what the key is, and what it is used as here.
   * `timeout` in ms.
   */
  explainWrongType(error: unknown, names: LockNames, usedAs: string, timeout: number): Promise<unknown>;
  /** Calls back each time that a connection was made again, perhaps to other data. Returns what stops it. */
  onReconnect(listener: () => void): () => void;
  /** `close` has no time: what is not answered now fails. Absent where that takes `commandTimeout`. */
  cutOff?(): void;
  /** Calls back when requests seem to be unanswered for `WARNED_AFTER` ms, and again meanwhile. Returns what stops it. */
  onSilence(listener: () => void): () => void;
  /** Nobody here waits any more: ends subscriptions, and pauses for pollers. Never rejects. */
  endMessages?(): Promise<void>;
  /** Ends timers and connections of its own. */
  close(): Promise<void>;
}
