import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { EvalOptions } from '../../lib/redis/client';
import { CommandTimeoutError, UnexpectedReplyError } from '../../lib/redis/failure';
import { Redis } from '../../lib/redis/redis';
import { LockScript } from '../../lib/redis/script';
import { FakeClock } from '../support/fake-clock';
import { noScript, silence } from '../support/mock-redis';

const acquire = new LockScript('acquire', 'return 1');
const release = new LockScript('release', 'return 2', (reply) => reply === 2);

const asItIs = (reply: unknown): unknown => reply;

let time: FakeClock;

beforeEach(() => {
  time = new FakeClock();
});

afterEach(() => time.restore());

/** A plain client of a server that has every key. */
function plainClient() {
  const answer = async (_: string, { keys = [], arguments: args = [] }: EvalOptions = {}): Promise<unknown> =>
    args[0] === String(keys.length) ? keys.map(() => 2) : 2;
  return { socketEpoch: 1, eval: jest.fn(answer), evalSha: jest.fn(answer) };
}

const together = (redis: Redis, script: LockScript, many: number, name = 'key') =>
  Array.from({ length: many }, (_, i) => redis.run(script, [`${name}-${i}`], ['an argument'], 1_000 + i, asItIs));

async function acquaint(redis: Redis): Promise<void> {
  await Promise.all(together(redis, release, 21));
}

it('sends calls together only when releases have shown that one server has all keys', async () => {
  const client = plainClient();
  const redis = new Redis(client, 5_000);
  await Promise.all(together(redis, acquire, 30));
  expect(client.evalSha).toHaveBeenCalledTimes(30);
  await Promise.all(together(redis, release, 20));
  await Promise.all(together(redis, acquire, 30));
  expect(client.evalSha).toHaveBeenCalledTimes(30 + 1 + 30);
  await Promise.all(together(redis, release, 2, 'another'));
  await Promise.all(together(redis, acquire, 30));
  expect(client.evalSha).toHaveBeenCalledTimes(30 + 1 + 30 + 1 + 1);
});

it('learns nothing from keys of the same hash slot', async () => {
  const client = plainClient();
  const redis = new Redis(client, 5_000);
  for (let i = 0; i < 30; i++) await Promise.all(together(redis, release, 2, `{tag-${i}}`));
  client.evalSha.mockClear();
  await Promise.all(together(redis, acquire, 30));
  expect(client.evalSha).toHaveBeenCalledTimes(30);
});

it('sends an argument that all calls have once', async () => {
  const client = plainClient();
  const redis = new Redis(client, 5_000);
  const run = (key: string, ...args: string[]) => redis.run(release, [key], args, 1_000, asItIs);
  await Promise.all([run('one', 'a', '60', '='), run('two', 'b', '60', '='), run('three', 'c', '60', '=')]);
  const [, options] = client.evalSha.mock.calls[0] as [string, EvalOptions];
  expect(options).toEqual({
    keys: ['one', 'two', 'three'],
    arguments: ['3', '-==', '60', '=', 'a', 'b', 'c'],
  });
});

it('puts no more than a hundred into one script, and only calls that are alike', async () => {
  const client = plainClient();
  const redis = new Redis(client, 5_000);
  await acquaint(redis);
  client.evalSha.mockClear();
  await Promise.all([
    ...together(redis, acquire, 250),
    ...together(redis, release, 3),
    redis.run(acquire, ['two', 'keys'], ['an argument'], 1_000, asItIs),
  ]);
  expect(client.evalSha.mock.calls.map(([, options]) => options?.keys?.length)).toEqual([100, 100, 50, 3, 2]);
});

it('rejects each at its own deadline, and passes the late answer on to each', async () => {
  const client = plainClient();
  const redis = new Redis(client, 5_000);
  await acquaint(redis);
  let answer: (replies: unknown) => void = () => undefined;
  client.evalSha.mockReturnValue(
    new Promise((resolve) => {
      answer = resolve;
    }),
  );
  const errors: CommandTimeoutError[] = [];
  const calls = [100, 200].map((timeout, i) =>
    redis.run(acquire, [`key-${i}`], [], timeout, asItIs).catch((error: CommandTimeoutError) => errors.push(error)),
  );
  await time.advance(100);
  expect(errors).toHaveLength(1);
  await time.advance(100);
  await Promise.all(calls);
  expect(errors.every((error) => error instanceof CommandTimeoutError)).toBe(true);
  answer(['first', 'second']);
  expect(await Promise.all(errors.map(({ late }) => late))).toEqual(['first', 'second']);
});

it('sends the script once for all when the server does not know it, and not when all are over', async () => {
  const client = plainClient();
  const redis = new Redis(client, 5_000);
  await acquaint(redis);
  client.evalSha.mockRejectedValueOnce(noScript());
  expect(await Promise.all(together(redis, acquire, 5))).toEqual([2, 2, 2, 2, 2]);
  expect(client.eval).toHaveBeenCalledTimes(1);
  let refuse: (error: Error) => void = () => undefined;
  client.evalSha.mockReturnValueOnce(
    new Promise((_, reject) => {
      refuse = reject;
    }),
  );
  const calls = Promise.allSettled(together(redis, acquire, 5));
  await time.advance(1_004);
  refuse(noScript());
  expect((await calls).every(({ status }) => status === 'rejected')).toBe(true);
  expect(client.eval).toHaveBeenCalledTimes(1);
});

it('does not take the reply of another command for its own', async () => {
  const client = plainClient();
  const redis = new Redis(client, 5_000);
  await acquaint(redis);
  for (const reply of [1, 'text', null, [2, 2]]) {
    client.evalSha.mockResolvedValueOnce(reply);
    const outcomes = await Promise.allSettled(together(redis, acquire, 3));
    const refusal = { status: 'rejected', reason: expect.any(UnexpectedReplyError) };
    expect(outcomes).toEqual([refusal, refusal, refusal]);
  }
});

it.each(['TRYAGAIN Multiple keys', 'MOVED 1 host:1', 'ASK 1 host:1', 'CROSSSLOT Keys'])(
  'sends each alone that the server refuses together, and tries together again: %s',
  async (refusal) => {
    const client = plainClient();
    const redis = new Redis(client, 5_000);
    await acquaint(redis);
    client.evalSha.mockClear();
    client.evalSha.mockRejectedValueOnce(new Error(refusal));
    expect(await Promise.all(together(redis, acquire, 3))).toEqual([2, 2, 2]);
    expect(client.evalSha).toHaveBeenCalledTimes(1 + 3);
    // Keys of one hash slot: they may go together after any of these.
    const names = ['{tag}a', '{tag}b'];
    expect(await Promise.all(names.map((name) => redis.run(release, [name], ['an argument'], 1_000, asItIs)))).toEqual([
      2, 2,
    ]);
    expect(client.evalSha).toHaveBeenCalledTimes(1 + 3 + 1);
  },
);

it('rejects all when nothing comes back, and does not ask again', async () => {
  const client = plainClient();
  const redis = new Redis(client, 5_000);
  await acquaint(redis);
  client.evalSha.mockClear();
  client.evalSha.mockRejectedValueOnce(new Error('Socket closed unexpectedly')).mockImplementation(silence);
  const outcomes = await Promise.allSettled(together(redis, acquire, 3));
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(client.evalSha).toHaveBeenCalledTimes(1);
});
