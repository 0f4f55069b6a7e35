import { expect, it } from '@jest/globals';
import { leasesOf } from '../../support/judge/leases';
import { exclusionViolations, TokenJudge } from '../../support/judge/violations';
import { HISTORIES, processesOf, UNCONFIRMED } from './histories';

it.each([...HISTORIES, UNCONFIRMED])('The judge of the soak judges %s: %j', (_, verdicts, texts) => {
  const leases = processesOf(texts).flatMap(leasesOf);
  const tokens = leases.some(({ token }) => token !== undefined) ? new TokenJudge().violations(leases) : [];
  const found = [...exclusionViolations(leases), ...tokens];
  expect(found.map(({ kind, calls = [] }) => `${kind}: ${calls.join(' ')}`)).toEqual(verdicts);
});
