import { inMemory } from '../support/in-memory-kind';
import { lockContract } from './lock-contract';

lockContract('fair', inMemory);
