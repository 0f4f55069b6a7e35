import { randomUUID } from 'node:crypto';
import { describeKeyType, describeKind, SHARED_KINDS } from '../api/lock-types';
import { clock } from '../internal/clock';
import { lua } from '../internal/lua';
import { says, UnexpectedReplyError } from './failure';
import { hashTag, LockNames } from './names';
import { Script } from './script';

/** Calls that went alone, though others were made with them: as many are worth a probe. */
const WORTH_A_PROBE = 32;

/** Keys of a probe. A proxy that spreads keys evenly over two servers has them on one of them once in 500,000 times. */
const PROBED = 20;

/** ms after a probe that failed. */
const PAUSE = 10_000;

export const WRITE = new Script(
  'probe: write',
  `for i = 1, #KEYS do redis.call('SET', KEYS[i], '', 'PX', ARGV[1]) end
return #KEYS`,
);

/** Says whether the key was there, and removes it. With SET, since every user of locks has the right to it. */
export const TAKE = new Script('probe: take', `return redis.call('SET', KEYS[1], '', 'XX', 'PX', 1) and 1 or 0`);

/** Runs a script about these keys, alone. Resolves to its reply. Rejects after `commandTimeout`. */
type RunAlone = (script: Script, keys: string[], args: string[]) => Promise<unknown>;

/**
 * Where the keys of a client are. A command about keys of several locks needs all of them on one server. A cluster
 * refuses other commands (CROSSSLOT). A proxy that shards keys may route by the first key without an error. So a probe
 * asks once: one command writes several keys, and then a command for each looks for it.
 */
export class KeyPlacement {
  #state: 'unknown' | 'together' | 'by slot' | 'apart';
  #probe: Promise<void> | undefined;
  #wentAlone = 0;
  #notBefore = Number.NEGATIVE_INFINITY;
  readonly #registryKey: string;
  /** ms */
  readonly #commandTimeout: number;
  readonly #run: RunAlone;

  constructor(registryKey: string, commandTimeout: number, isCluster: boolean, run: RunAlone) {
    this.#state = isCluster ? 'by slot' : 'unknown';
    this.#registryKey = registryKey;
    this.#commandTimeout = commandTimeout;
    this.#run = run;
  }

  /** Keys with the same group may go into one command; `undefined`: this key goes alone. */
  groupOf(key: string): string | undefined {
    if (this.#state === 'together') return '';
    return this.#state === 'by slot' ? (hashTag(key) ?? key) : undefined;
  }

  /** Whether these go into one command, as far as is known. */
  areTogether(keys: readonly string[]): boolean {
    const group = this.groupOf(keys[0] as string);
    return group !== undefined && keys.every((key) => this.groupOf(key) === group);
  }

  /** What is made next is of more use in one command: it is worth a probe. */
  isNeeded(): void {
    this.#wentAlone = WORTH_A_PROBE;
  }

  /** The server refused keys of several slots in one command. */
  crossSlot(): void {
    this.#state = 'by slot';
  }

  /** `calls`: how many were made at once. A promise: a probe is not answered yet, and they may wait for its answer. */
  made(calls: number): Promise<void> | undefined {
    if (this.#state !== 'unknown') return undefined;
    this.#wentAlone += calls;
    if (this.#wentAlone >= WORTH_A_PROBE && clock.now() >= this.#notBefore) this.#probe ??= this.#ask();
    return this.#probe;
  }

  /** Never rejects: calls go alone until a later probe is answered. */
  async #ask(): Promise<void> {
    try {
      const isTogether = await this.#findsAll();
      if (this.#state === 'unknown') this.#state = isTogether ? 'together' : 'apart';
    } catch (error) {
      if (says(error, 'crossSlot')) this.crossSlot();
      this.#notBefore = clock.now() + PAUSE;
      this.#wentAlone = 0;
    }
    this.#probe = undefined;
  }

  async #findsAll(): Promise<boolean> {
    // Names that belong to locks, and that no lock can have.
    const keys = Array.from(
      { length: PROBED },
      () => `${new LockNames(this.#registryKey, `probe-${randomUUID()}`).companion('evals')}:probe`,
    );
    // They expire after the last command about them has been answered.
    const written = await this.#run(WRITE, keys, [String(Math.ceil(3 * this.#commandTimeout))]);
    if (written !== PROBED) throw new UnexpectedReplyError(WRITE.name, written);
    const found = await Promise.all(keys.map((key) => this.#run(TAKE, [key], [])));
    const nonsense = found.find((one) => one !== 0 && one !== 1);
    if (nonsense !== undefined) throw new UnexpectedReplyError(TAKE.name, nonsense);
    return !found.includes(0);
  }
}

export const DESCRIBE = new Script('describe a key', () =>
  lua('redis/describe', { SHARED_KINDS: SHARED_KINDS.join(' ') }),
);

/** Runs a script: see `Redis.run`. */
interface ScriptRuns {
  run<T>(script: Script, keys: string[], args: string[], timeout: number, read: (reply: unknown) => T): Promise<T>;
}

/**
 * For an error about a key of the wrong type: an error that says what the key is, and what it is used as here.
 * `timeout` in ms.
 */
export async function explainWrongType(
  error: unknown,
  redis: ScriptRuns,
  name: string,
  usedAs: string,
  timeout: number,
): Promise<unknown> {
  try {
    const type = await redis.run(DESCRIBE, [name], [], timeout, String);
    if (type === 'none') return error;
    const kind = SHARED_KINDS.find((one) => one === type);
    const what = kind === undefined ? (describeKeyType(type) ?? `a key of type ${type}`) : describeKind(kind);
    return new Error(`WRONGTYPE It is ${what} in Redis, and it is used as ${usedAs} here`, { cause: error });
  } catch {
    // A user without the right to ask.
    return error;
  }
}
