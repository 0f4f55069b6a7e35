import { expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../../../support/simulation/plan';
import { simulate } from './simulate';

it('The simulation makes every change of state that may be made in 15 seeds of each type, without a violation', async () => {
  const summary = await simulate('--from', '51', '--seeds', '15', '--states');
  for (const type of LOCK_TYPES) expect(summary).toContain(type);
  expect(summary).toMatch(/hold +│ requested +│ held +│ \d+/);
  expect(summary).not.toContain('never');
});
