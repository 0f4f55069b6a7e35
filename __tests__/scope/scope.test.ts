import { LOCK_TYPES } from '../../lib/strategies';
import { scopeContract } from './scope-contract';

for (const lockType of LOCK_TYPES) scopeContract(lockType);
