import { embeddedClient } from '../support/client-kinds';
import { contractFor } from './lock-contract';

contractFor(embeddedClient, ['fair']);
