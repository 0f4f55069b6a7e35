import { contractFor } from '../../contract/lock-contract';
import { ioredisClient } from '../../support/ioredis-kinds';
import { packages } from '../../support/ioredis-packages';

for (const one of packages) contractFor(ioredisClient(one));
