import { jest } from '@jest/globals';
import type { EvalOptions, RedisClient } from '../../lib';

type Run = RedisClient['eval'];

/** How the scripts of a spin lock answer. */
export const granted = 1;
export const released = 1;
export const refused = (life: number): number[] => [life];

/**
 * The mock that application code would write: a client with `eval` and `evalSha`. Without more, every script answers 1:
 * every lock is free, and every release is of one's own key.
 */
export function mockRedis() {
  const evaluate = jest.fn<Run>().mockResolvedValue(1);
  const evaluateSha = jest.fn<Run>().mockResolvedValue(1);
  return {
    eval: evaluate,
    evalSha: evaluateSha,
    /** Commands so far, EVALSHA and EVAL together. */
    get sent(): number {
      return evaluate.mock.calls.length + evaluateSha.mock.calls.length;
    },
    /** What the commands so far were told, in order. */
    get calls(): (EvalOptions | undefined)[] {
      return evaluateSha.mock.calls.map(([, options]) => options);
    },
  };
}

/** An answer that never comes. */
export function silence(): Promise<never> {
  return new Promise(() => {});
}

/** What a server says that does not know a script. */
export function noScript(): Error {
  return new Error('NOSCRIPT No matching script. Please use EVAL.');
}
