import { describePrivate } from '../support/private-redis';
import { commonFaults } from './common-faults';
import { oneServer } from './topologies';

describePrivate('one server', () => commonFaults(oneServer));
