import { contractFor } from '../contract/lock-contract';
import { ioredisClient } from '../support/ioredis-kinds';
import { packageNamed } from '../support/ioredis-packages';

contractFor(ioredisClient(packageNamed('iovalkey')));
