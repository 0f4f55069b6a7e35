import { expect, it } from '@jest/globals';
import { leasesIn } from '../../../support/judge/leases';
import type { Outcome, WorkerRecord } from '../../../support/judge/records';
import { exclusionViolations, TokenJudge } from '../../../support/judge/violations';
import { unfinishedKeys } from '../../../support/soak/unfinished-keys';
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
