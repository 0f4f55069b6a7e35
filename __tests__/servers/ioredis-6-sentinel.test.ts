import { contractFor } from '../contract/lock-contract';
import { ioredisSentinel } from '../support/ioredis-kinds';
import { packageNamed } from '../support/ioredis-packages';

contractFor(ioredisSentinel(packageNamed('ioredis 6')));
