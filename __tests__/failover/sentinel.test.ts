import { describe } from '@jest/globals';
import { describePrivate } from '../support/private-redis';
import { commonFaults } from './common-faults';
import { failovers } from './failovers';
import { sentinel } from './topologies';

describePrivate('sentinel with two replicas', () => {
  describe('fails over', () => failovers(sentinel));
  describe('stays', () => commonFaults(sentinel));
});
