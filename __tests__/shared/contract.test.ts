import { redis6Client } from '../support/client-kinds';
import { sharedContract } from './shared-contract';

sharedContract(redis6Client);
