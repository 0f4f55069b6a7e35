import type { LockProtocol } from '../core/protocol';
import type { Inspected, LockBackend, LockInspector, ScriptRunner, SharedBackend } from '../lock-backend';
import type { LockNames } from '../redis/names';
import { globPattern } from './glob-pattern';
import type { InMemoryConnection } from './in-memory-connection';
import { InMemoryProtocol } from './in-memory-protocol';
import type { StoredKind } from './stored-lock';

/** Memory has no Lua. */
const heldScripts: ScriptRunner = {
  assertPlaced() {
    throw new TypeError('Locks in memory run no scripts: lease.eval needs a lock in Redis');
  },
  run: () => Promise.reject(new TypeError('Locks in memory run no scripts')),
};

/** The locks of one registry in memory. */
export class InMemoryBackend implements LockBackend, LockInspector {
  readonly connection: InMemoryConnection;
  readonly inspector = this;
  readonly heldScripts = heldScripts;
  readonly shared: SharedBackend = {
    inspector: this,
    open: (kind, names) => this.#open(kind, names),
    heldScripts: () => heldScripts,
  };
  readonly #isFencing: boolean;

  constructor(connection: InMemoryConnection, isFencing: boolean) {
    this.connection = connection;
    this.#isFencing = isFencing;
  }

  open(names: LockNames): LockProtocol {
    return this.#open('lock', names);
  }

  inspect(names: LockNames, timeout: number): Promise<Inspected> {
    return this.connection.send(() => this.#state(names), timeout);
  }

  forceUnlock(names: LockNames, timeout: number): Promise<Inspected> {
    return this.connection.send(() => {
      const before = this.#state(names);
      this.connection.locks.find(names.lock).forceUnlock();
      return before;
    }, timeout);
  }

  async *keys(prefix: string, match: string, _count: number, timeout: number): AsyncGenerator<string[], void, void> {
    const pattern = globPattern(match);
    const names = await this.connection.send(() => this.connection.locks.names, timeout);
    yield names.filter((name) => name.startsWith(prefix) && pattern.test(name.slice(prefix.length)));
  }

  /** The in-memory error already names both uses. */
  explainWrongType(error: unknown): Promise<unknown> {
    return Promise.resolve(error);
  }

  onReconnect(listener: () => void): () => void {
    return this.connection.locks.onReconnect(listener);
  }

  async close(): Promise<void> {}

  #open(kind: StoredKind, names: LockNames): LockProtocol {
    return new InMemoryProtocol(names.lock, kind, this.connection, this.#isFencing);
  }

  #state(names: LockNames): Inspected {
    const { state } = this.connection.locks.find(names.lock);
    return this.#isFencing ? state : { ...state, fencingToken: undefined };
  }
}
