import { expect, it } from '@jest/globals';
import { LockWatch, type Result, starvedIn } from '../apart/interop/languages/watch';

/** Lines of MONITOR, each a second after the one before it. */
function seen(...steps: string[]): LockWatch {
  const watch = new LockWatch();
  for (const id of ['a', 'b', 'c']) watch.knows(id, 'beside', id);
  for (const [second, step] of steps.entries()) {
    const [what = '', id] = step.split(' ');
    const command = what === 'incr' || what === 'decr' ? `"${what}" "witness-${id}:inside"` : `"ECHO" "${step}"`;
    watch.sees(`${second}.000000 [0 127.0.0.1:1] ${command}`);
  }
  return watch;
}

const waits = (watch: LockWatch) => watch.results().map(({ longest }) => longest);

it('A judge of several processes counts the turns of one in which another one is inside', () => {
  expect(seen('incr a', 'decr a', 'incr b', 'decr b').overlaps).toBe(0);
  expect(seen('incr a', 'incr b', 'decr a', 'decr b').overlaps).toBe(1);
  expect(seen('incr a', 'incr a').overlaps).toBe(1);
});

it('A judge of several processes knows how long each was without the lock, from its begin or its last turn', () => {
  const watch = seen('began a', 'began b', 'incr a', 'decr a', 'incr b', 'decr b', 'incr a', 'decr a');
  expect(waits(watch)).toEqual([3_000, 3_000, 0]);
});

it('A judge of several processes outlasts one that is killed inside, and counts nothing until the next one enters', () => {
  const watch = seen('began a', 'began b', 'incr a', 'ended a', 'ECHO', 'ECHO', 'incr b', 'decr b', 'decr a');
  expect(watch.overlaps).toBe(0);
  expect(waits(watch)).toEqual([2_000, 2_000, 0]);
});

it('A judge of several processes counts the wait of one that is killed meanwhile', () => {
  expect(waits(seen('began a', 'incr b', 'decr b', 'ended a'))).toEqual([3_000, 1_000, 0]);
});

it('A process starves where it waits for longer than others do among themselves, and not for a short time', () => {
  const result = (phase: string, longest: number): Result => ({ title: phase, phase, turns: 1, longest, p99: 0 });
  const starved = (alone: number, beside: number, delay = 0) =>
    starvedIn([result('alone', alone), result('beside', beside)], delay).starved.length;
  expect([starved(10_000, 15_000), starved(10_000, 15_001)]).toEqual([0, 1]);
  expect([starved(100, 6_000), starved(100, 6_001), starved(100, 7_000, 1_000)]).toEqual([0, 1, 0]);
  expect(starvedIn([result('alone', 10_000), result('beside', 5_000)], 0).ratio).toBe(0.5);
});
