import { describe, expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate } from '../support/private-redis';
import { BEFORE, killUnderLoad } from './kill-under-load';

const TRIES = 2;

describePrivate('a master is killed before it has replicated what it granted', () => {
  it('loses locks that callers have, without minReplicas', async () => {
    // Now and then everything was replicated in the moment of the kill.
    let lost = 0;
    for (let i = 0; i < 10 && lost === 0; i++) ({ lost } = await killUnderLoad('spin', 0));
    expect(lost).toBeGreaterThan(0);
  });

  describe.each(LOCK_TYPES)('with minReplicas: 1, %s', (lockType) => {
    it(`loses none, in ${TRIES} tries`, async () => {
      for (let i = 0; i < TRIES; i++) {
        const { acquired, lost } = await killUnderLoad(lockType, 1);
        expect(acquired).toBeGreaterThanOrEqual(BEFORE);
        expect(lost).toBe(0);
      }
    });
  });
});
