import { CommandError, WRONG_TYPE } from './reply';

interface Kinds {
  string: string;
  hash: Map<string, string>;
  zset: Map<string, number>;
  list: string[];
}

export type Kind = keyof Kinds;

interface Entry {
  readonly kind: Kind;
  value: Kinds[Kind];
  /** On the server's clock in ms; the key is still there in this very ms. */
  expiresAt: number;
}

const EMPTY: { readonly [K in Kind]: () => Kinds[K] } = {
  string: () => '',
  hash: () => new Map(),
  zset: () => new Map(),
  list: () => [],
};

/** The keys of a Redis server, which expire by its clock. */
export class Keyspace {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;

  /** `now`: the server's clock in whole ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Of the wanted kind; `undefined`: there is no such key. Raises WRONGTYPE for a key of another kind. */
  get<K extends Kind>(key: string, kind: K): Kinds[K] | undefined {
    const entry = this.#find(key);
    if (entry === undefined) return undefined;
    if (entry.kind !== kind) throw new CommandError(WRONG_TYPE);
    return entry.value as Kinds[K];
  }

  /** As `get`, and makes an empty one that does not expire. */
  obtain<K extends Kind>(key: string, kind: K): Kinds[K] {
    const found = this.get(key, kind);
    if (found !== undefined) return found;
    const value = EMPTY[kind]();
    this.#entries.set(key, { kind, value, expiresAt: Number.POSITIVE_INFINITY });
    return value;
  }

  /** Replaces the key whatever its kind. `expiresAt` undefined: it keeps its end. */
  setString(key: string, value: string, expiresAt: number | undefined): void {
    const end = expiresAt ?? this.#find(key)?.expiresAt ?? Number.POSITIVE_INFINITY;
    this.#entries.set(key, { kind: 'string', value, expiresAt: end });
  }

  /** A collection without members does not exist. */
  dropIfEmpty(key: string, size: number): void {
    if (size === 0) this.#entries.delete(key);
  }

  delete(key: string): boolean {
    return this.has(key) && this.#entries.delete(key);
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  kind(key: string): Kind | undefined {
    return this.#find(key)?.kind;
  }

  /** `undefined`: no such key; `Infinity`: it has no end. */
  expiresAt(key: string): number | undefined {
    return this.#find(key)?.expiresAt;
  }

  expireAt(key: string, time: number): void {
    const entry = this.#find(key);
    if (entry === undefined) return;
    if (time <= this.#now()) this.#entries.delete(key);
    else entry.expiresAt = time;
  }

  /** All that is in the other one. */
  copy(from: Keyspace): void {
    for (const [key, entry] of structuredClone(from.#entries)) this.#entries.set(key, entry);
  }

  clear(): void {
    this.#entries.clear();
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.has(key));
  }

  #find(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expiresAt >= this.#now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}
