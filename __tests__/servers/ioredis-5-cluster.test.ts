import { contractFor } from '../contract/lock-contract';
import { ioredisCluster } from '../support/ioredis-kinds';
import { packageNamed } from '../support/ioredis-packages';

contractFor(ioredisCluster(packageNamed('ioredis 5')));
