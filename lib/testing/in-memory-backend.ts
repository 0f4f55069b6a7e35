import type { Inspected, LockBackend, LockInspector, ScriptRunner, SharedBackend } from '../core/backend';
import type { LockProtocol } from '../core/protocol';
import type { Connection } from '../redis/connection';
import type { LockNames } from '../redis/names';
import { globPattern } from '../redis/names';
import type { InMemoryLocks } from './in-memory-locks';
import { InMemoryProtocol } from './in-memory-protocol';
import type { StoredKind } from './stored-lock';

/** Memory has no Lua. */
const heldScripts: ScriptRunner = {
  assertPlaced() {
    throw new TypeError('Locks in memory run no scripts: lease.eval needs a lock in Redis');
  },
  run: () => Promise.reject(new TypeError('Locks in memory run no scripts')),
};

/** The locks of one registry in memory. Nothing is lost on the way to them, and nothing comes in another order. */
export class InMemoryBackend implements LockBackend, LockInspector, Connection {
  readonly connection = this;
  readonly connectionEpoch = 0;
  readonly disruptions = 0;
  readonly isClosed = false;
  readonly lastError = undefined;
  readonly inspector = this;
  readonly heldScripts = heldScripts;
  readonly shared: SharedBackend = {
    inspector: this,
    open: (kind, names) => this.#open(kind, names),
    heldScripts: () => heldScripts,
  };
  /** From now on nothing waits for an answer: it is there at once, or the request fails. */
  isCutOff = false;
  readonly locks: InMemoryLocks;
  readonly #isFencing: boolean;

  constructor(locks: InMemoryLocks, isFencing: boolean) {
    this.locks = locks;
    this.#isFencing = isFencing;
  }

  /** As `InMemoryLocks.send`. */
  send<T>(execute: () => T, timeout: number): Promise<T> {
    return this.locks.send(execute, timeout, this);
  }

  cutOff(): void {
    this.isCutOff = true;
    this.locks.cutOff(this);
  }

  open(names: LockNames): LockProtocol {
    return this.#open('lock', names);
  }

  inspect(names: LockNames, timeout: number): Promise<Inspected> {
    return this.send(() => this.#state(names), timeout);
  }

  forceUnlock(names: LockNames, timeout: number): Promise<Inspected> {
    return this.send(() => {
      const before = this.#state(names);
      this.locks.find(names.lock).forceUnlock();
      return before;
    }, timeout);
  }

  async *keys(prefix: string, match: string, _count: number, timeout: number): AsyncGenerator<string[], void, void> {
    const pattern = globPattern(match);
    const names = await this.send(() => this.locks.names, timeout);
    yield names.filter((name) => name.startsWith(prefix) && pattern.test(name.slice(prefix.length)));
  }

  /** The in-memory error already names both uses. */
  explainWrongType(error: unknown): Promise<unknown> {
    return Promise.resolve(error);
  }

  onReconnect(listener: () => void): () => void {
    return this.locks.onReconnect(listener);
  }

  mayBeOutdated(): boolean {
    return false;
  }

  unansweredSince(): undefined {}

  inOrder(ask: () => void): void {
    ask();
  }

  slotOf(): undefined {}

  async close(): Promise<void> {}

  #open(kind: StoredKind, names: LockNames): LockProtocol {
    return new InMemoryProtocol(names.lock, kind, this, this.#isFencing);
  }

  #state(names: LockNames): Inspected {
    const { state } = this.locks.find(names.lock);
    return this.#isFencing ? state : { ...state, fencingToken: undefined };
  }
}
