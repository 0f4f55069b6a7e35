import { SHARED_KINDS } from '../../lib/api/lock-types';
import { nameIn } from '../../lib/api/owner-name';
import { sharedNow } from './awake-clock';
import { type AdminClient, belongsTo, type Entry, keyOf, readContent } from './redis-content';
import { LONG_TTL } from './settings';

/** ms that what a dead process left may stay: the life of its lease, and of its position in a queue. */
const EXCUSED = LONG_TTL + 20_000;
/** ms after a kill at which Redis is read: by then it has executed what a connection still carried. */
const CHECKS = [20, 300, 1_500];

/** What nobody holds or waits for, and nothing excuses. */
export interface Leftover {
  readonly text: string;
  readonly key?: string;
  /** When it was written, if its ttl was a long one, on the clock that all processes of the machine share. */
  readonly since?: number;
}

/**
 * What is in Redis though nobody holds it and nobody waits. Excused is only what a killed process, or a `close` that
 * gave its leases up, left behind: the very owner values that were there at that time.
 */
export class Leftovers {
  readonly #admin: AdminClient;
  readonly #excused = new Map<string, number>();

  constructor(admin: AdminClient) {
    this.#admin = admin;
  }

  /** Notes what a process left that has just ended with calls on these keys; `name`: of its registry, if only that counts. */
  async excuse(keys: readonly string[], name?: string): Promise<void> {
    const endedAt = sharedNow();
    for (const after of CHECKS) {
      await new Promise((resolve) => setTimeout(resolve, endedAt + after - sharedNow()));
      const { entries } = await readContent(this.#admin);
      for (const entry of entries) {
        const isIts = name === undefined || isOwnerOf(entry.owner, name);
        if (isIts && keys.some((key) => belongsTo(entry.name, key))) this.#excused.set(idOf(entry), endedAt + EXCUSED);
      }
    }
  }

  async find(): Promise<Leftover[]> {
    const { entries, endless } = await readContent(this.#admin);
    return [
      ...endless.map((name) => ({ text: `"${name}" has no expiry` })),
      ...entries.filter((entry) => !this.#isExcused(entry)).map(describe),
    ];
  }

  /** Keys that a dead process still blocks: by its lease and, where `queueBlocks`, by its position in the queue. */
  async blocked(keys: readonly string[], queueBlocks: boolean): Promise<string[]> {
    const { entries } = await readContent(this.#admin);
    const blocking = entries.filter(({ isLock }) => isLock || queueBlocks);
    return keys.filter((key) => blocking.some(({ name }) => belongsTo(name, key)));
  }

  #isExcused(entry: Entry): boolean {
    return sharedNow() + (entry.isLock ? entry.ttl : 0) < (this.#excused.get(idOf(entry)) ?? 0);
  }
}

/** A member of a shared lock has its kind before its owner value. */
export function isOwnerOf(owner: string, name: string): boolean {
  const its = nameIn(owner);
  return its === name || SHARED_KINDS.some((kind) => its === `${kind}:${name}`);
}

function describe({ name, owner, isLock, ttl }: Entry): Leftover {
  if (!isLock) return { text: `"${name}" has ${owner}, and nobody waits` };
  const text = `"${name}" is held by ${owner} for another ${ttl} ms, and nobody has that lease`;
  return { text, key: keyOf(name), since: sharedNow() + ttl - LONG_TTL };
}

function idOf({ name, owner }: Entry): string {
  return JSON.stringify([name, owner]);
}
