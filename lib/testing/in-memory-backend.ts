import type { Inspected, LockBackend, LockInspector, ScriptRunner, SharedBackend } from '../lock-backend';
import type { LockProtocol } from '../protocols/protocol';
import type { Connection } from '../redis/connection';
import type { LockNames } from '../redis/names';
import { globPattern } from './glob-pattern';
import type { InMemoryLocks } from './in-memory-locks';
import { InMemoryProtocol } from './in-memory-protocol';
import type { StoredKind } from './stored-lease';

/** Nothing is lost or comes in another order on the way to memory. */
const connection: Connection = {
  connectionEpoch: 0,
  disruptions: 0,
  needsProof: false,
  lastError: undefined,
  slotOf: () => undefined,
};

/** Memory has no Lua. */
const heldScripts: ScriptRunner = {
  assertPlaced() {
    throw new TypeError('Locks in memory run no scripts: lease.eval needs a lock in Redis');
  },
  run: () => Promise.reject(new TypeError('Locks in memory run no scripts')),
};

/** The locks of one registry in memory. */
export class InMemoryBackend implements LockBackend, LockInspector {
  readonly #locks: InMemoryLocks;
  readonly #isFencing: boolean;

  constructor(locks: InMemoryLocks, isFencing: boolean) {
    this.#locks = locks;
    this.#isFencing = isFencing;
  }

  get connection(): Connection {
    return connection;
  }

  get inspector(): LockInspector {
    return this;
  }

  get heldScripts(): ScriptRunner {
    return heldScripts;
  }

  get shared(): SharedBackend {
    return {
      inspector: this,
      open: (kind, names) => this.#open(names, kind),
      heldScripts: () => heldScripts,
    };
  }

  open(names: LockNames): LockProtocol {
    return this.#open(names, 'lock');
  }

  inspect(names: LockNames, timeout: number): Promise<Inspected> {
    return this.#locks.send(() => this.#state(names), timeout);
  }

  forceUnlock(names: LockNames, timeout: number): Promise<Inspected> {
    return this.#locks.send(() => {
      const before = this.#state(names);
      this.#locks.find(names.lock).forceUnlock();
      return before;
    }, timeout);
  }

  async *keys(prefix: string, match: string, _count: number, timeout: number): AsyncGenerator<string[], void, void> {
    const pattern = globPattern(match);
    const names = await this.#locks.send(() => this.#locks.names, timeout);
    yield names.filter((name) => name.startsWith(prefix) && pattern.test(name.slice(prefix.length)));
  }

  /** The in-memory error already names both uses. */
  explainWrongType(error: unknown): Promise<unknown> {
    return Promise.resolve(error);
  }

  onReconnect(listener: () => void): () => void {
    return this.#locks.onReconnect(listener);
  }

  async close(): Promise<void> {}

  #open(names: LockNames, kind: StoredKind): LockProtocol {
    return new InMemoryProtocol(names.lock, kind, this.#locks, this.#isFencing);
  }

  #state(names: LockNames): Inspected {
    const { state } = this.#locks.find(names.lock);
    return this.#isFencing ? state : { ...state, fencingToken: undefined };
  }
}
