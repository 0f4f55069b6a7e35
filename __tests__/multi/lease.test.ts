import { expect, it, jest } from '@jest/globals';
import type { HeldLease } from '../../lib/core/unlock-order';
import { HeldMultiLease } from '../../lib/multi/multi-lease';

it('renew of a lease of several keys passes its timeout on to each of them', async () => {
  const leases = [1, 2].map(() => ({ renew: jest.fn<HeldLease['renew']>().mockResolvedValue(undefined) }));
  const lease: HeldLease = new HeldMultiLease('a + b', leases as unknown as HeldLease[]);
  await lease.renew(5_000, 50);
  for (const { renew } of leases) expect(renew).toHaveBeenCalledWith(5_000, 50);
});
