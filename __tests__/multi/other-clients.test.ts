import { redis6Client, redis6Cluster, redis6Pool, redis6Sentinel } from '../support/client-kinds';
import { multiContract } from './multi-contract';

multiContract('pub-sub', redis6Client);
multiContract('redisson-fair', redis6Client);
multiContract('spin', redis6Pool);
multiContract('pub-sub', redis6Sentinel);
multiContract('fair', redis6Cluster);
