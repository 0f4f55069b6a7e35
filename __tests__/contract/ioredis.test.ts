import { ioredisClient } from '../support/ioredis-kinds';
import { packages } from '../support/ioredis-packages';
import { contractFor } from './lock-contract';

const TYPES = [['fair'], ['pub-sub'], ['redisson']] as const;

// One type through each package: the first of them does all of the contract.
packages.forEach((one, i) => {
  const types = TYPES[i];
  if (i === 0) contractFor(ioredisClient(one), types);
  else contractFor(ioredisClient(one), [], types);
});
