import { expect, it } from '@jest/globals';
import { findLocks } from '../../../lib/tools/inspection/find-locks';
import { glideCluster } from '../../support/glide-kinds';

// Not in one process with `faults/client-has-no-connection`: once a client of a cluster was closed, valkey-glide counts too
// few connections for all clients of the process.
it('Through a cluster of valkey-glide, nothing is found, which says so', async () => {
  const opened = await glideCluster.open();
  const { locks, missing } = await findLocks(opened.clients[0]);
  await opened.close();
  expect([locks, missing]).toEqual([[], [expect.stringContaining('no way to ask each server')]]);
});
