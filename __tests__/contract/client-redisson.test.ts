import { redis6Client } from '../support/client-kinds';
import { contractFor } from './lock-contract';

// A file of its own: another worker runs it.
contractFor(redis6Client, ['redisson'], ['redisson-fair']);
