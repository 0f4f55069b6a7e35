import { redis6Cluster } from '../support/client-kinds';
import { contractFor } from './lock-contract';

contractFor(redis6Cluster, ['fair'], ['redisson']);
