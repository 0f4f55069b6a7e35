import { redis6Sentinel } from '../support/client-kinds';
import { contractFor } from './lock-contract';

contractFor(redis6Sentinel, ['pub-sub']);
