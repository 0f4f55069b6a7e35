import { ioredisClient } from '../support/ioredis-kinds';
import { packages } from '../support/ioredis-packages';
import { contractFor } from './lock-contract';

// Three types of lock, to save time. `npm run test:servers` runs all of them with each.
const TYPES = [['fair'], ['pub-sub'], ['redisson']] as const;

packages.forEach((one, i) => {
  contractFor(ioredisClient(one), TYPES[i]);
});
