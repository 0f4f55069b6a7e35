import { expect, it } from '@jest/globals';
import { leasesIn } from '../../../support/judge/leases';
import type { Outcome, WorkerRecord } from '../../../support/judge/records';
import { exclusionViolations, TokenJudge } from '../../../support/judge/violations';
import { isOwnerOf } from '../../../support/soak/leftovers';
import { keysLeftInGrace, unfinishedKeys } from '../../../support/soak/unfinished-keys';
import { HISTORIES, processesOf, UNCONFIRMED } from './histories';

it.each([...HISTORIES, UNCONFIRMED])('The judge of the soak judges %s: %j', (_, verdicts, texts) => {
  const leases = leasesIn(processesOf(texts));
  const tokens = leases.some(({ token }) => token !== undefined) ? new TokenJudge().violations(leases) : [];
  const found = [...exclusionViolations(leases), ...tokens];
  expect(found.map(({ kind, calls = [] }) => `${kind}: ${calls.join(' ')}`)).toEqual(verdicts);
});

const KILLED_AT = 60_000;

const called = (call: string, key: string, ...others: string[]): WorkerRecord => ({
  event: 'called',
  call,
  key,
  others,
  what: 'tryLock',
  at: 0,
});

const settled = (call: string, outcome: Outcome, at: number): WorkerRecord => ({ event: 'settled', call, outcome, at });

it('A killed process may leave something of its open calls, and of those that it ended a moment before', () => {
  const records = [
    called('1', 'long over'),
    settled('1', 'refused', KILLED_AT - 20_000),
    called('2', 'refused'),
    settled('2', 'refused', KILLED_AT - 100),
    called('3', 'unlocked'),
    settled('3', 'unlocked', KILLED_AT - 100),
    called('4', 'aborted'),
    settled('4', 'aborted', KILLED_AT - 100),
    called('5', 'open', 'and another'),
  ];
  expect(unfinishedKeys(records, KILLED_AT)).toEqual(['refused', 'unlocked', 'aborted', 'open', 'and another']);
});

it('A closed registry may leave the lock of a call that left in its grace', () => {
  const replacing = (call: string, key: string): WorkerRecord => ({
    ...(called(call, key) as Extract<WorkerRecord, { event: 'called' }>),
    grace: 5_000,
  });
  const records: WorkerRecord[] = [
    replacing('1', 'long over'),
    settled('1', 'aborted', KILLED_AT - 20_000),
    replacing('2', 'left'),
    settled('2', 'aborted', KILLED_AT - 2_000),
    replacing('3', 'granted'),
    { event: 'granted', call: '3', token: 1, sample: { from: 1, to: 1, remaining: 500 } },
    settled('3', 'unlocked', KILLED_AT - 2_000),
    called('4', 'ordinary'),
    settled('4', 'aborted', KILLED_AT - 2_000),
  ];
  expect(keysLeftInGrace(records, KILLED_AT)).toEqual(['left']);
});

it('What a closed registry may leave is told by its name, also before the owner value of a shared lock', () => {
  const value = 'soak-1.2:KgLr0uNESayNMi_ydbihRw:1795957591959100';
  for (const owner of [value, `semaphore:${value}`, `read:${value}`]) expect(isOwnerOf(owner, 'soak-1.2')).toBe(true);
  expect(isOwnerOf(value, 'soak-1')).toBe(false);
});
