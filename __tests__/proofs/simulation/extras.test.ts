import { expect, it } from '@jest/globals';
import { simulate } from './simulate';

/** A mutation, the extra that finds it, a type and a seed of it, and what it violates. */
const FOUND = [
  ['unreachable-not-noticed', 'half open', 'fair', '12', 'starved'],
  ['not-tried-again', 'slot moves', 'semaphore', '9', 'failed though calm'],
  ['mark-not-read', 'half open', 'pub-sub', '109', 'starved'],
  ['late-message-not-noticed', 'half open', 'fair', '104', 'free lock left alone'],
  ['granted-where-nobody-is-counted', 'listens at a replica', 'fair', '13', 'lease without key'],
  ['deaf-though-proved', 'half open', 'read-write', '101', 'starved'],
  ['half-released-is-lost', 'slot moves', 'read-write', '9', 'failed though calm'],
  ['task-of-the-first', 'callers of once leave', 'spin', '7', 'not once'],
  ['asked-once-for-the-result', 'once in trouble', 'spin', '6', 'not once'],
  ['left-with-the-first', 'callers of once leave', 'spin', '7', 'strange error'],
] as const;

it.each(FOUND)('The simulation finds %s by the extra "%s"', async (name, extra, type, seed, violated) => {
  const failing = simulate('--type', type, '--seed', seed, '--extra', extra, '--without', name);
  await expect(failing).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining(`${type}: ${violated}`) });
});

it('The simulation finds no starvation of a fair lock in a process that no message reaches', async () => {
  expect(await simulate('--type', 'fair', '--from', '12', '--seeds', '1', '--extra', 'half open')).toContain('fair');
});
