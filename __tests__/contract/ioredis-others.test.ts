import { ioredisClient } from '../support/ioredis-kinds';
import { packageNamed } from '../support/ioredis-packages';
import { contractFor } from './lock-contract';

contractFor(ioredisClient(packageNamed('ioredis 6')), [], ['pub-sub']);
contractFor(ioredisClient(packageNamed('iovalkey')), [], ['redisson']);
