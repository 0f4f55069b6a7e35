import type { Keyspace } from './keyspace';
import type { Reply } from './reply';

const TRYAGAIN: Reply = { err: 'TRYAGAIN Multiple keys request during rehashing of slot' };
const MOVED: Reply = { err: 'MOVED 0 127.0.0.1:7001' };

/** Commands of scripts that have no key. All others have one, but for those that take any number. */
const WITHOUT_KEY = new Set(['TIME', 'PUBLISH', 'PUBSUB']);
const OF_KEYS_ONLY = new Set(['DEL', 'UNLINK', 'EXISTS']);

/**
 * A slot of a cluster that moves to another node, key by key, as Redis 7 does it. All keys of the server are in it. The
 * client follows ASK by itself: so what neither node can execute is refused, and what a script uses that is gone.
 */
export class SlotMove {
  /** All keys have moved, and the client does not know that. */
  isOver = false;
  readonly #keys: Keyspace;
  readonly #text: string;
  readonly #there = new Set<string>();

  /** `text`: the answer to a script that uses a key which its node does not have. */
  constructor(keys: Keyspace, text: string) {
    this.#keys = keys;
    this.#text = text;
  }

  /** Moves one key. False: all have moved. */
  moveNext(): boolean {
    const next = this.#keys.keys().find((key) => !this.#there.has(key));
    if (next !== undefined) this.#there.add(next);
    return next !== undefined;
  }

  /** `undefined`: one of the nodes runs a script with these keys. */
  refusal(keys: readonly string[]): Reply | undefined {
    if (this.isOver) return MOVED;
    const here = keys.filter((key) => this.#isHere(key)).length;
    if (here === keys.length) return undefined;
    const isMissing = keys.some((key) => !this.#keys.has(key));
    return here > 0 || (keys.length > 1 && isMissing) ? TRYAGAIN : undefined;
  }

  /** The node that the keys move to runs the script: it has all that it needs, or writes it. */
  isThere(keys: readonly string[]): boolean {
    return !keys.every((key) => this.#isHere(key));
  }

  wrote(keys: readonly string[]): void {
    for (const key of keys) this.#there.add(key);
  }

  /** On the node that the keys come from. */
  refusalInScript([name = '', ...args]: readonly string[]): Reply | undefined {
    const command = name.toUpperCase();
    if (WITHOUT_KEY.has(command)) return undefined;
    const used = OF_KEYS_ONLY.has(command) ? args : args.slice(0, 1);
    return used.every((key) => this.#isHere(key)) ? undefined : { err: this.#text };
  }

  #isHere(key: string): boolean {
    return this.#keys.has(key) && !this.#there.has(key);
  }
}
