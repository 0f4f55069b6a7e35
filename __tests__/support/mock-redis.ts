import { jest } from '@jest/globals';
import type { EvalOptions, RedisClient } from '../../lib';

type Run = RedisClient['eval'];

/** Replies of the scripts of a spin lock. In ms: the life of the key of another holder, and what a key lasts. */
export const granted = 1;
export const refused = (life: number, ...by: string[]): unknown[] => [life, ...by];
export const renewed = 1;
export const released = 1;
export const stolen = -1;
export const lastsFor = (ms: number): number[] => [ms];

/** Replies of the scripts of a semaphore, or of a reader: in ms, the life of the key of the holders. */
export const sharedGranted = [0, 0, 1];
export const sharedRefused = (life: number, permits: number): unknown[] => {
  const arrival = '1700000000000000';
  const leaseEnd = '1700000020000';
  return [0, 0, 0, life, 'another:1', arrival, permits, leaseEnd];
};
export const sharedReleased = [1, 0];
export const sharedExpired = [0, 0];

/** The reply of the script that enters a shared lock; `leaseEnd`: that of the caller, if a message lets it in. */
export const queuedUntilLetIn = (life: number, leaseEnd: string): (number | string)[] => {
  return [0, 0, 0, life, 'another:1', '1700000000000000', 0, leaseEnd];
};

/**
 * The mock that application code would write: a client with `eval` and `evalSha`. By default every script replies 1:
 * every lock is free, and every release succeeds.
 */
export function mockRedis() {
  const evaluate = jest.fn<Run>().mockResolvedValue(1);
  const evaluateSha = jest.fn<Run>().mockResolvedValue(1);
  return {
    eval: evaluate,
    evalSha: evaluateSha,
    /** Number of commands, EVALSHA and EVAL together. */
    get sent(): number {
      return evaluate.mock.calls.length + evaluateSha.mock.calls.length;
    },
    /** The options of each EVALSHA, in order. */
    get calls(): (EvalOptions | undefined)[] {
      return evaluateSha.mock.calls.map(([, options]) => options);
    },
  };
}

/** A reply that never arrives. */
export function silence(): Promise<never> {
  return new Promise(() => {});
}

/** A reply that arrives when the test says so. */
export interface LateReply {
  readonly promise: Promise<unknown>;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export function lateReply(): LateReply {
  let settle: [LateReply['resolve'], LateReply['reject']] = [() => {}, () => {}];
  const promise = new Promise<unknown>((...both) => (settle = both));
  return { promise, resolve: settle[0], reject: settle[1] };
}

/** The reply to the next EVALSHA arrives when the test says so. */
export function nextReply({ evalSha }: { readonly evalSha: jest.Mock<Run> }): LateReply {
  const reply = lateReply();
  evalSha.mockReturnValueOnce(reply.promise);
  return reply;
}

/** The error of a server that has not loaded a script. */
export function noScript(): Error {
  return new Error('NOSCRIPT No matching script. Please use EVAL.');
}
