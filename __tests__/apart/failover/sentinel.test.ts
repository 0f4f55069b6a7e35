import { describe } from '@jest/globals';
import { describePrivate } from '../../support/private-redis';
import { commonFaults, failovers } from './faults';
import { sentinel } from './topologies';

describePrivate('sentinel with two replicas', () => {
  describe('fails over', () => failovers(sentinel));
  describe('stays', () => commonFaults(sentinel));
});
