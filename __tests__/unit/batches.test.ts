import { beforeEach, expect, it, jest } from '@jest/globals';
import type { EvalOptions } from '../../lib/redis/client';
import { CommandTimeoutError, NOT_ASKED, ReplyError, UnexpectedReplyError } from '../../lib/redis/failure';
import { hashTag, LockNames } from '../../lib/redis/names';
import { Redis } from '../../lib/redis/redis';
import { LockScript } from '../../lib/redis/script';
import { FakeClock } from '../support/fake-clock';
import { lateReply, nextReply, noScript, silence } from '../support/mock-redis';

const acquire = new LockScript('acquire', 'return 1', true);
const release = new LockScript('release', 'return 2');

const asItIs = (reply: unknown): unknown => reply;

const time = FakeClock.install();
let client: Client;
let redis: Redis;

beforeEach(() => {
  client = plainClient();
  redis = new Redis(client, 'orders', 5_000);
});

/** A plain client of a server that has every key. */
function plainClient() {
  const answer = async (keys: readonly string[], [first]: readonly string[], alone: number): Promise<unknown> => {
    if (first === String(keys.length)) return keys.map(() => 2);
    return keys.length > 1 ? keys.length : alone;
  };
  return {
    socketEpoch: 1,
    // Only probes come as text.
    eval: jest.fn((_: string, { keys = [], arguments: args = [] }: EvalOptions = {}) => answer(keys, args, 1)),
    evalSha: jest.fn((_: string, { keys = [], arguments: args = [] }: EvalOptions = {}) => answer(keys, args, 2)),
  };
}

type Client = ReturnType<typeof plainClient>;

const together = (script: LockScript, many: number, name = 'key') =>
  Array.from({ length: many }, (_, i) => redis.run(script, [`${name}-${i}`], ['an argument'], 1_000 + i, asItIs));

/** As many calls make a probe. */
const BURST = 32;

async function acquaint(): Promise<void> {
  await Promise.all(together(acquire, BURST));
  client.evalSha.mockClear();
  client.eval.mockClear();
}

/** The number of keys in each command. */
const sizes = ({ mock }: Client['evalSha']) => mock.calls.map(([, { keys = [] } = {}]) => keys.length);

it('Where the keys are is asked once, and a burst of acquisitions waits for the answer', async () => {
  await Promise.all(together(acquire, BURST - 1));
  expect(sizes(client.evalSha)).toEqual(Array(BURST - 1).fill(1));
  expect(client.eval).not.toHaveBeenCalled();
  client.evalSha.mockClear();
  const both = [...together(acquire, 30), ...together(release, 3)];
  await Promise.resolve();
  // What is about locks that are held waits for nothing.
  expect(sizes(client.evalSha)).toEqual([1, 1, 1]);
  await Promise.all(both);
  expect(sizes(client.evalSha)).toEqual([1, 1, 1, 30]);
  await Promise.all([...together(acquire, 200), ...together(release, 50)]);
  expect(sizes(client.evalSha)).toEqual([1, 1, 1, 30, 100, 100, 50]);
  expect(sizes(client.eval)).toEqual([20, ...Array(20).fill(1)]);
  const [, { keys = [] } = {}] = client.eval.mock.calls[0] as Parameters<Client['eval']>;
  expect(new Set(keys.map(hashTag)).size).toBe(20);
  // Names that no lock can have.
  for (const key of keys) expect(() => LockNames.checked('', key)).toThrow(RangeError);
});

it('A batch sends no acquisition that nobody waits for any more', async () => {
  client.eval.mockImplementation(silence);
  const calls = Promise.allSettled(together(acquire, BURST));
  await time.advance(1_000 + BURST / 2);
  await time.advance(4_000);
  const outcomes = await calls;
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
  const { late } = (outcomes[0] as PromiseRejectedResult).reason as CommandTimeoutError;
  await expect(late).rejects.toThrow('It was not sent');
  expect(client.evalSha).not.toHaveBeenCalled();
});

it('Where the keys are on a cluster is decided by hash tags, and nothing is asked', async () => {
  redis = new Redis(Object.assign(client, { slots: [] }), 'orders', 5_000);
  for (const script of [release, acquire]) {
    await Promise.all([...together(script, BURST), ...together(script, BURST, '{tag}')]);
    expect(sizes(client.evalSha)).toEqual([...Array(BURST).fill(1), BURST]);
    client.evalSha.mockClear();
  }
  expect(client.eval).not.toHaveBeenCalled();
});

it('A batch has keys of one slot once the server has refused those of several', async () => {
  await acquaint();
  client.evalSha.mockRejectedValueOnce(new Error('CROSSSLOT Keys in request'));
  await Promise.all(together(release, 2));
  client.evalSha.mockClear();
  const keys = ['{a}1', '{a}2', '{b}1'];
  await Promise.all(keys.map((key) => redis.run(release, [key], [], 1_000, asItIs)));
  expect(sizes(client.evalSha)).toEqual([2, 1]);
});

it('A batch sends the last arguments once where all calls have the same', async () => {
  await acquaint();
  const run = (key: string, ...args: string[]) => redis.run(release, [key], args, 1_000, asItIs);
  await Promise.all([run('one', 'a', '60', '='), run('two', 'b', '60', '='), run('three', 'c', '60', '=')]);
  const [, options] = client.evalSha.mock.calls[0] as [string, EvalOptions];
  expect(options).toEqual({
    keys: ['one', 'two', 'three'],
    arguments: ['3', '1', '60', '=', 'a', 'b', 'c'],
  });
  await Promise.all([run('one', '60'), run('two', '60')]);
  expect(client.evalSha.mock.calls[1]?.[1]?.arguments).toEqual(['2', '0', '60']);
});

it('A batch puts no more than a hundred into one script, and only calls that are alike', async () => {
  await acquaint();
  await Promise.all([
    ...together(acquire, 250),
    ...together(release, 3),
    redis.run(acquire, ['two', 'keys'], ['an argument'], 1_000, asItIs),
  ]);
  expect(client.evalSha.mock.calls.map(([, options]) => options?.keys?.length)).toEqual([100, 100, 50, 3, 2]);
});

it('A batch rejects each at its own deadline, and passes the late answer on to each', async () => {
  await acquaint();
  const reply = lateReply();
  client.evalSha.mockReturnValue(reply.promise);
  const errors: CommandTimeoutError[] = [];
  const calls = [100, 200].map((timeout, i) =>
    redis.run(acquire, [`key-${i}`], [], timeout, asItIs).catch((error: CommandTimeoutError) => errors.push(error)),
  );
  await time.advance(100);
  expect(errors).toHaveLength(1);
  await time.advance(100);
  await Promise.all(calls);
  expect(errors.every((error) => error instanceof CommandTimeoutError)).toBe(true);
  reply.resolve(['first', 'second']);
  expect(await Promise.all(errors.map(({ late }) => late))).toEqual(['first', 'second']);
});

it('A batch sends the script once for all when the server does not know it, and not when all are over', async () => {
  await acquaint();
  client.evalSha.mockRejectedValueOnce(noScript());
  expect(await Promise.all(together(acquire, 5))).toEqual([2, 2, 2, 2, 2]);
  expect(client.eval).toHaveBeenCalledTimes(1);
  const reply = nextReply(client);
  const calls = Promise.allSettled(together(acquire, 5));
  await time.advance(1_004);
  reply.reject(noScript());
  expect((await calls).every(({ status }) => status === 'rejected')).toBe(true);
  expect(client.eval).toHaveBeenCalledTimes(1);
});

it('A batch does not take the reply of another command for its own', async () => {
  await acquaint();
  for (const reply of [1, 'text', null, [2, 2]]) {
    client.evalSha.mockResolvedValueOnce(reply);
    const outcomes = await Promise.allSettled(together(acquire, 3));
    const refusal = { status: 'rejected', reason: expect.any(UnexpectedReplyError) };
    expect(outcomes).toEqual([refusal, refusal, refusal]);
  }
});

it.each(['TRYAGAIN Multiple keys', 'MOVED 1 host:1', 'ASK 1 host:1', 'CROSSSLOT Keys'])(
  'A batch sends each alone that the server refuses together, and tries together again: %s',
  async (refusal) => {
    await acquaint();
    client.evalSha.mockRejectedValueOnce(new Error(refusal));
    expect(await Promise.all(together(acquire, 3))).toEqual([2, 2, 2]);
    expect(client.evalSha).toHaveBeenCalledTimes(1 + 3);
    // Keys of one hash slot: they may go together after any of these.
    const names = ['{tag}a', '{tag}b'];
    expect(await Promise.all(names.map((name) => redis.run(release, [name], ['an argument'], 1_000, asItIs)))).toEqual([
      2, 2,
    ]);
    expect(client.evalSha).toHaveBeenCalledTimes(1 + 3 + 1);
  },
);

it('A batch rejects all when nothing comes back, and does not ask again', async () => {
  await acquaint();
  client.evalSha.mockRejectedValueOnce(new Error('Socket closed unexpectedly')).mockImplementation(silence);
  const outcomes = await Promise.allSettled(together(acquire, 3));
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(client.evalSha).toHaveBeenCalledTimes(1);
});

it('A command of several calls gives each its own reply, error, or that its lock was not asked for', async () => {
  await acquaint();
  // A lock may have an owner of any name.
  const replies = [2, [0], [60, 'its owner'], ['error', 60, '', 0]];
  client.evalSha.mockResolvedValueOnce([
    new Error('WRONGTYPE no'),
    ['error', '@user_script: 14: -OOM no\r\n'],
    [],
    ...replies,
  ]);
  const outcomes = await Promise.allSettled(together(acquire, 7));
  expect(outcomes).toEqual([
    { status: 'rejected', reason: new Error('WRONGTYPE no') },
    { status: 'rejected', reason: new ReplyError('@user_script: 14: -OOM no') },
    { status: 'rejected', reason: NOT_ASKED },
    ...replies.map((value) => ({ status: 'fulfilled', value })),
  ]);
});

it('A command of several calls brings its script while one of them can be answered in time', async () => {
  await acquaint();
  const reply = lateReply();
  client.evalSha.mockReturnValueOnce(reply.promise as Promise<never>);
  const outcomes = Promise.allSettled(together(acquire, 2));
  await time.advance(1_000);
  client.eval.mockResolvedValueOnce([3, 4]);
  reply.reject(noScript());
  await time.advance(0);
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  expect(sizes(client.eval)).toEqual([2]);
});

it('A command of several calls refuses no lock for another one, unless they are asked for all or none', async () => {
  await acquaint();
  const calls: Promise<unknown>[] = [];
  redis.allOrNone(() => calls.push(...together(acquire, 2)));
  calls.push(...together(acquire, 2, 'other'));
  await Promise.all(calls);
  expect(client.evalSha.mock.calls.map(([sha]) => sha)).toEqual([acquire.allOrNone.sha1, acquire.forMany.sha1]);
  const { forMany, allOrNone } = new LockScript('acquire', 'return 1');
  expect(forMany.source).not.toContain('isOneRefused');
  expect(allOrNone.source).toContain('isOneRefused');
  expect([forMany.name, allOrNone.name]).toEqual(['acquire, for many', 'acquire, all or none']);
});
