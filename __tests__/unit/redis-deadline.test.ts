import { beforeEach, expect, it, jest } from '@jest/globals';
import { clock } from '../../lib/internal/clock';
import { CommandTimeoutError } from '../../lib/redis/failure';
import { Redis } from '../../lib/redis/redis';
import { Script } from '../../lib/redis/script';
import { FakeClock } from '../support/fake-clock';
import { type LateReply, lateReply, mockRedis, nextReply, noScript, silence } from '../support/mock-redis';

const script = new Script('one', 'return 1');

const asItIs = (reply: unknown): unknown => reply;

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let commands: Redis;

beforeEach(() => {
  redis = mockRedis();
  commands = new Redis(redis, 'orders', 5_000);
});

/** Runs the script, by the deadline of the call. */
const run = (timeout: number) => commands.run(script, ['key'], [], timeout, asItIs);
const SILENCE = { after: 100, error: { name: 'CommandTimeoutError' } };

it('A script is named by its SHA-1, as Redis does', () => {
  expect(script.sha1).toBe('e0e1f9fabfc9d4800c877a703b823ac0578ff8db');
});

it.each([
  ['of the call', 100, 5_000, 100],
  ['of the registry, where that is shorter', 60_000, 5_000, 5_000],
])('Every command settles by the deadline %s', async (_, timeout, commandTimeout, deadline) => {
  redis.evalSha.mockImplementation(silence);
  const running = new Redis(redis, 'orders', commandTimeout).run(script, ['key'], [], timeout, asItIs);
  const error = new CommandTimeoutError(deadline, Promise.resolve());
  expect(await time.settled(running)).toEqual({ after: deadline, error });
  expect(time.pending).toBe(0);
});

it('There is one timer for all commands in flight, and each is rejected at its own deadline', async () => {
  redis.evalSha.mockImplementation(silence).mockResolvedValueOnce('answer');
  const rejected: number[] = [];
  expect(await run(150)).toBe('answer');
  const running = [200, 100, 7_000, 300].map((timeout) =>
    run(timeout).catch(() => rejected.push(Math.min(timeout, 5_000))),
  );
  expect(time.pending).toBe(1);
  for (const ms of [99, 1, 100, 100, 4_699]) await time.advance(ms);
  expect(rejected).toEqual([100, 200, 300]);
  await time.advance(1);
  await Promise.all(running);
  expect(rejected).toEqual([100, 200, 300, 5_000]);
  expect(time.pending).toBe(0);
});

it('A command meets a deadline also when the timer of an earlier command disappeared, as at the end of fake timers', async () => {
  redis.evalSha.mockImplementation(silence).mockResolvedValueOnce('answer');
  expect(await run(1_000)).toBe('answer');
  time.begin();
  time.now += 2_000;
  const rejected = expect(run(1_000)).rejects.toThrow(CommandTimeoutError);
  await time.advance(1_001);
  await rejected;
});

it('A command does not keep the process alive after a reply or an error', async () => {
  redis.evalSha.mockResolvedValueOnce('answer').mockRejectedValueOnce(new Error('ERR no'));
  expect(await commands.run(script, ['key'], ['a'], 1_000, asItIs)).toBe('answer');
  expect(redis.evalSha).toHaveBeenCalledWith(script.sha1, { keys: ['key'], arguments: ['a'] });
  await expect(run(1_000)).rejects.toThrow('ERR no');
  expect(time.keepingAlive).toBe(0);
});

it('A command does not read a reply that came too late: its caller has gone on', async () => {
  const reply = nextReply(redis);
  const read: unknown[] = [];
  const running = commands.run(script, ['key'], [], 100, (reply) => read.push(reply));
  expect(await time.settled(running)).toMatchObject(SILENCE);
  reply.resolve('late');
  await time.advance(0);
  expect(read).toEqual([]);
});

it('The script is not sent when its NOSCRIPT came too late, and goes with the next command', async () => {
  const reply = lateReply();
  redis.evalSha.mockImplementation(silence).mockReturnValueOnce(reply.promise);
  expect(await time.settled(run(100))).toMatchObject(SILENCE);
  reply.reject(noScript());
  await time.advance(0);
  expect(redis.eval).not.toHaveBeenCalled();
  redis.eval.mockResolvedValue(1);
  expect(await time.settled(run(100))).toMatchObject({ value: 1 });
});

it('The script goes with the next command where the connection was lost with it, after a NOSCRIPT', async () => {
  redis.evalSha.mockRejectedValue(noScript());
  redis.eval.mockRejectedValueOnce(new Error('Socket closed unexpectedly')).mockResolvedValue(1);
  await expect(run(100)).rejects.toThrow('Socket closed');
  // A server that closes the connection after each error would answer EVALSHA with NOSCRIPT for ever.
  expect(await run(100)).toBe(1);
  expect([redis.evalSha.mock.calls.length, redis.eval.mock.calls.length]).toEqual([1, 2]);
});

it('EVALSHA and EVAL count against one deadline', async () => {
  redis.evalSha.mockRejectedValueOnce(noScript());
  redis.eval.mockImplementation(silence);
  expect(await time.settled(run(100))).toMatchObject(SILENCE);
  expect(redis.eval).toHaveBeenCalledTimes(1);
});

it.each(['evalSha', 'eval'] as const)('A command rejects when the client throws: %s', async (throwing) => {
  redis.evalSha.mockRejectedValueOnce(noScript());
  redis[throwing].mockReset().mockImplementation(() => {
    throw new Error('of the client');
  });
  await expect(run(100)).rejects.toThrow('of the client');
  expect(time.keepingAlive).toBe(0);
});

it('A NOSCRIPT at the deadline is silence, and no refusal (P1)', async () => {
  const late = nextReply(redis);
  // The socket's buffer is read between the deadline and the rejection.
  const reading = jest.spyOn(clock, 'immediate').mockImplementation(async () => {
    late.reject(noScript());
    await new Promise((resolve) => setImmediate(resolve));
  });
  const reply = run(100);
  const rejected = expect(reply).rejects.toBeInstanceOf(CommandTimeoutError);
  await time.advance(100);
  await rejected;
  expect(reading).toHaveBeenCalledTimes(1);
  expect(redis.eval).not.toHaveBeenCalled();
  reading.mockRestore();
});

it.each([
  ['answer', (pass: LateReply) => pass.resolve('answer'), ['answer']],
  ['error', (pass: LateReply) => pass.reject(new Error('ERR no')), ['Error: ERR no']],
])('A command settles once when the %s is read between the deadline and the rejection', async (_, arrive, outcome) => {
  const reply = nextReply(redis);
  // The event loop was blocked until after the deadline: the socket's buffer is read next.
  const reading = jest.spyOn(clock, 'immediate').mockImplementation(async () => {
    arrive(reply);
    await new Promise((resolve) => setImmediate(resolve));
  });
  const outcomes: unknown[] = [];
  const note = (settled: unknown) => void outcomes.push(String(settled));
  commands.send({ script, keys: ['key'], args: [], timeout: 100, now: time.now, read: asItIs }, note, note);
  await time.advance(200);
  expect(outcomes).toEqual(outcome);
  reading.mockRestore();
});

it('An answer that comes after the deadline is passed on to who follows the command up', async () => {
  const replies = [lateReply(), lateReply()];
  for (const { promise } of replies) redis.evalSha.mockReturnValueOnce(promise);
  const late = ['a', 'b'].map((key) =>
    commands.run(script, [key], [], 100, asItIs).catch((error: CommandTimeoutError) => error.late),
  );
  await time.advance(100);
  replies[0]?.resolve('late');
  replies[1]?.reject(new Error('ERR late'));
  await expect(late[0]).resolves.toBe('late');
  await expect(late[1]).rejects.toThrow('ERR late');
});

it('A script that is not known is sent by the first of many commands, and by another one that asks twice in vain', async () => {
  redis.evalSha.mockRejectedValue(noScript());
  redis.eval.mockRejectedValueOnce(new Error('ERR no'));
  await expect(run(1_000)).rejects.toThrow('ERR no');
  await run(1_000);
  expect([redis.evalSha.mock.calls.length, redis.eval.mock.calls.length]).toEqual([2, 2]);
  redis.evalSha.mockClear();
  redis.eval.mockClear();
  const loading = lateReply();
  redis.eval.mockReturnValueOnce(loading.promise);
  const first = run(1_000);
  const second = run(1_000);
  await time.advance(1);
  expect([redis.evalSha.mock.calls.length, redis.eval.mock.calls.length]).toEqual([3, 2]);
  loading.reject(new Error('ERR no'));
  await expect(first).rejects.toThrow('ERR no');
  expect(await second).toBe(1);
  // Nobody sends it now: the next one does at once.
  for (let calls = 4; calls < 6; calls++) {
    await run(1_000);
    expect([redis.evalSha.mock.calls.length, redis.eval.mock.calls.length]).toEqual([calls, calls - 1]);
  }
});
