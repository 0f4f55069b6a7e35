import { redis6Client } from '../support/client-kinds';
import { contractFor } from './lock-contract';

contractFor(redis6Client, ['fair'], ['spin', 'pub-sub']);
