import { expect, it } from '@jest/globals';
import { simulate } from './simulate';

/** A mutation, the extra that finds it, a type and a seed of it, and what it violates. */
const FOUND = [
  ['unreachable-not-noticed', 'half open', 'fair', '12', 'starved'],
  ['not-tried-again', 'slot moves', 'semaphore', '9', 'failed though calm'],
  ['mark-not-read', 'half open', 'pub-sub', '109', 'starved'],
  ['late-message-not-noticed', 'half open', 'fair', '104', 'free lock left alone'],
  ['hears-before-redis-knows', 'half open', 'fair', '473', 'free lock left alone'],
  ['granted-where-nobody-is-counted', 'listens at a replica', 'fair', '13', 'lease without key'],
  ['deaf-though-proved', 'half open', 'read-write', '101', 'starved'],
  ['half-released-is-lost', 'slot moves', 'read-write', '9', 'failed though calm'],
  ['task-of-the-first', 'callers of once leave', 'spin', '7', 'not once'],
  ['asked-once-for-the-result', 'once in trouble', 'spin', '6', 'not once'],
  ['left-with-the-first', 'callers of once leave', 'spin', '7', 'strange error'],
  ['not-reminded', 'replaced', 'spin', '431', 'left in Redis'],
] as const;

it.each(FOUND)('The simulation finds %s by the extra "%s"', async (name, extra, type, seed, violated) => {
  const failing = simulate('--type', type, '--seed', seed, '--extra', extra, '--without', name);
  await expect(failing).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining(`${type}: ${violated}`) });
});

/** A type and a seed about a process that no message reaches: it was treated badly, or the rules were too strict. */
const DEAF: readonly [type: string, seed: string, what: string][] = [
  ['fair', '12', 'is not starved'],
  ['fair', '508', 'may be passed over until it polls, also when messages reach it'],
  ['fair', '779', 'may be passed over until it polls'],
  ['pub-sub', '667', 'may be late for the end of many slices when it polls'],
  ['redisson', '1387', 'is left the lock by three that take turns'],
];

it.each(DEAF)('In the simulation of %s, seed %s, a process that no message reaches %s', async (type, seed) => {
  expect(await simulate('--type', type, '--seed', seed)).toContain(type);
});

it('In the simulation a process that stood still for longer than a grace may begin a task whose lock was taken', async () => {
  expect(await simulate('--type', 'pub-sub', '--seed', '1180', '--extra', 'replaced')).toContain('pub-sub');
});

it('The simulation lets a process that computes send the script of its first renewals a chunk later', async () => {
  expect(await simulate('--type', 'multi', '--seed', '1335')).toContain('multi');
});
