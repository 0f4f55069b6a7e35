import { contractFor } from '../../contract/lock-contract';
import { ioredisCluster } from '../../support/ioredis-kinds';
import { packages } from '../../support/ioredis-packages';

for (const one of packages) contractFor(ioredisCluster(one));
