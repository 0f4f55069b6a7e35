import { LOCK_TYPES } from '../../lib/protocols/lock-types';
import { scopeContract } from './scope-contract';

for (const lockType of LOCK_TYPES) scopeContract(lockType);
