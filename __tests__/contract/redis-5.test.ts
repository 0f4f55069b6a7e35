import { redis5Client } from '../support/client-kinds';
import { contractFor } from './lock-contract';

contractFor(redis5Client, ['redisson-fair']);
