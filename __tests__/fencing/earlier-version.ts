import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestClient } from '../support/redis';

/** ms */
const TTL = 10_000;

/** How one of the formats is written: the keys beside the lock, and what the scripts take after owner and ttl. */
interface Format {
  keys(name: string): string[];
  /** Of the script that acquires. */
  readonly acquire: readonly string[];
  /** Of the one that gives a hold to the next caller. `owner`: that of the next one. */
  passOn(owner: string): string[];
}

const spring: Format = { keys: (name) => [name, `{${name}}:fence`], acquire: [], passOn: () => [String(TTL)] };

const redisson: Format = { ...spring, keys: (name) => [name, `redisson_lock_token:{${name}}`] };

const fair: Format = {
  keys: (name) => [name, `{${name}}:queue`, `{${name}}:tickets`, `{${name}}:fence`],
  acquire: ['PUBLISH none 11000 0 '],
  passOn: (owner) => ['UNLINK', `PUBLISH none 11000 0 ${TTL} ${owner}`, 'channel'],
};

/** What the lock types of a version without blocks of tokens send, by their texts in `before-blocks`. */
const FORMATS = {
  spin: { format: spring, acquire: 'acquire-spring', passOn: 'confirm-or-release-spring' },
  'pub-sub': { format: spring, acquire: 'acquire-spring', passOn: 'confirm-or-release-spring' },
  fair: { format: fair, acquire: 'acquire-fair', passOn: 'hand-over-fair' },
  redisson: { format: redisson, acquire: 'acquire-redisson', passOn: 'confirm-or-release-redisson' },
} as const;

export type TypeWithBlocks = keyof typeof FORMATS;

export const TYPES_WITH_BLOCKS = Object.keys(FORMATS) as TypeWithBlocks[];

/** A process of a version in which each lease takes one script, and one token. */
export class EarlierVersion {
  readonly #client: TestClient;
  readonly #name: string;
  readonly #type: (typeof FORMATS)[TypeWithBlocks];
  #holds = 0;

  constructor(client: TestClient, name: string, lockType: TypeWithBlocks) {
    this.#client = client;
    this.#name = name;
    this.#type = FORMATS[lockType];
  }

  get #owner(): string {
    return `00000000-0000-4000-8000-000000000000:${this.#holds}`;
  }

  /** Acquires the lock, and returns its token; `undefined`: another one has it. */
  async acquire(): Promise<number | undefined> {
    this.#holds++;
    const { acquire, format } = this.#type;
    const reply = await this.#run(acquire, [this.#owner, String(TTL), ...format.acquire]);
    return Array.isArray(reply) ? undefined : Number(reply);
  }

  /** Gives its hold to its next caller, and returns the token of that one. */
  async passOn(): Promise<number> {
    const { passOn, format } = this.#type;
    const owner = this.#owner;
    if (format === fair) this.#holds++;
    const reply = await this.#run(passOn, [owner, ...format.passOn(this.#owner)]);
    if (Array.isArray(reply)) throw new Error(`It was not the holder: ${reply}`);
    return Number(reply);
  }

  /** Without a message: nobody may be waiting. */
  release(): Promise<unknown> {
    return this.#client.del(this.#name);
  }

  #run(script: string, args: string[]): Promise<unknown> {
    const text = readFileSync(join(__dirname, 'before-blocks', `${script}.lua`), 'utf8');
    return this.#client.eval(text, { keys: this.#type.format.keys(this.#name), arguments: args });
  }
}
