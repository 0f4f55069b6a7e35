import { redis6Cluster, redis6Pool, redis6Sentinel } from '../support/client-kinds';
import { multiContract } from './multi-contract';

multiContract('spin', redis6Pool);
multiContract('pub-sub', redis6Sentinel);
multiContract('fair', redis6Cluster);
