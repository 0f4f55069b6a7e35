import { upstashClient } from '../support/upstash-kind';
import { contractFor } from './lock-contract';

contractFor(upstashClient, ['spin']);
