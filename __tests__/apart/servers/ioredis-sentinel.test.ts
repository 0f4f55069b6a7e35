import { contractFor } from '../../contract/lock-contract';
import { ioredisSentinel } from '../../support/ioredis-kinds';
import { packages } from '../../support/ioredis-packages';

for (const one of packages) contractFor(ioredisSentinel(one));
