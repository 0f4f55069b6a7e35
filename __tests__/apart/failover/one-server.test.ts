import { describePrivate } from '../../support/private-redis';
import { commonFaults } from './faults';
import { oneServer } from './topologies';

describePrivate('one server', () => commonFaults(oneServer));
