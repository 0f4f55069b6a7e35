import { beforeEach, expect, it } from '@jest/globals';
import { type EvalOptions, type Lease, type RedisClient, RedisLockRegistry } from '../../lib';
import { clock } from '../../lib/internal/clock';
import { FakeClock } from '../support/fake-clock';

/** ms */
const TTL = 1_200;

interface Command {
  readonly options: EvalOptions | undefined;
  readonly answer: (reply: unknown) => void;
}

/** A client that writes and reads only when the event loop gets to its sockets, and a server with one key. */
class SlowLoop implements RedisClient {
  /** Until when the key of each name lives. */
  readonly #expiresAt = new Map<string, number>();
  #queued: Command[] = [];
  #answers: (() => void)[] = [];

  eval(_script: string, options?: EvalOptions): Promise<unknown> {
    return new Promise((answer) => this.#queued.push({ options, answer }));
  }

  evalSha(_sha1: string, options?: EvalOptions): Promise<unknown> {
    return this.eval('', options);
  }

  /**
   * The rest of a turn of the event loop, after its timers: it reads the answers that have arrived, and writes what was
   * queued, which the server executes at once.
   */
  async turn(): Promise<void> {
    for (const read of this.#answers.splice(0)) read();
    await time.advance(0);
    for (const { options, answer } of this.#queued.splice(0)) {
      const reply = this.#execute(options?.keys?.[0] ?? '', Number(options?.arguments?.[1]));
      this.#answers.push(() => answer(reply));
    }
    for (const resolve of immediates.splice(0)) resolve();
    await time.advance(0);
  }

  /** An acquisition or a renewal by the only process. */
  #execute(key: string, ttl: number): number {
    const expiresAt = this.#expiresAt.get(key) ?? Number.POSITIVE_INFINITY;
    if (time.now >= expiresAt) return 0;
    this.#expiresAt.set(key, time.now + ttl);
    return 1;
  }
}

const time = FakeClock.install();
let immediates: (() => void)[];
let client: SlowLoop;
let registry: RedisLockRegistry;

beforeEach(() => {
  immediates = [];
  clock.immediate = () => new Promise((resolve) => immediates.push(resolve));
  client = new SlowLoop();
  registry = new RedisLockRegistry(client, { registryKey: 'busy', expireAfter: TTL });
});

async function lock(): Promise<Lease> {
  const locking = registry.obtain('key').lock();
  await time.advance(0);
  await client.turn();
  await client.turn();
  return locking;
}

function block(ms: number): void {
  time.now += ms;
  time.wallNow += ms;
}

it.each([
  ['after each', 400, ['io']],
  ['after every second one', 400, ['io', 'block']],
  ['after each', 550, ['io']],
  ['after each', 1_000, ['io']],
] as const)(
  'keeps its lease while a task computes in chunks, and the client writes %s (%s ms of 1,200)',
  async (_, chunk, turns) => {
    const lease = await lock();
    for (let i = 0; i < 40; i++) {
      block(chunk);
      await time.advance(1);
      // The timer of the task was due too: it computes on before anything is written.
      if (turns[i % turns.length] === 'block') block(chunk);
      await client.turn();
      expect([i, lease.signal.aborted]).toEqual([i, false]);
    }
  },
);

it('counts the answer to a renewal that comes after its timeout', async () => {
  const lease = await lock();
  // Each answer takes longer than half of what is left of the lease when its request is sent.
  for (let at = 0; at < 4 * TTL; at += 10) {
    await time.advance(10);
    for (const resolve of immediates.splice(0)) resolve();
    if (at % 450 === 0) await client.turn();
  }
  expect(lease.signal.aborted).toBe(false);
  lease.assertHeld();
});
