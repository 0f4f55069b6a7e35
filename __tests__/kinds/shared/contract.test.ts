import { closing } from '../../contract/parts/closing';
import { expiring } from '../../contract/parts/expiring';
import { fencing } from '../../contract/parts/fencing';
import { keepingAlive } from '../../contract/parts/keeping-alive';
import { releasing } from '../../contract/parts/releasing';
import { renewing } from '../../contract/parts/renewing';
import { running } from '../../contract/parts/running';
import { waiting } from '../../contract/parts/waiting';
import { redis6Client, redis6Cluster, redis6Pool, redis6Sentinel } from '../../support/client-kinds';
import { inMemory } from '../../support/in-memory-kind';
import { sharedContract } from './shared-contract';

// What depends neither on the kind of client nor on the kind of shared lock is tested with one of them.
const everything = [waiting, releasing, expiring, renewing, keepingAlive, running, closing];

sharedContract('A semaphore with one permit', redis6Client, everything);
sharedContract('The lock for writing', redis6Client, [waiting, fencing]);
sharedContract('A semaphore with one permit', inMemory, everything);
sharedContract('The lock for writing', inMemory, [waiting, fencing]);
sharedContract('A semaphore with one permit', redis6Pool, [waiting]);
sharedContract('The lock for writing', redis6Cluster, [waiting, fencing]);
sharedContract('A semaphore with one permit', redis6Sentinel, [waiting]);
