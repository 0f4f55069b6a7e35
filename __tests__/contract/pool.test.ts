import { redis6Pool } from '../support/client-kinds';
import { contractFor } from './lock-contract';

contractFor(redis6Pool, ['spin'], ['redisson-fair']);
