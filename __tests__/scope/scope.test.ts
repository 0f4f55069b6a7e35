import { scopeContract } from './scope-contract';

// A scope knows nothing of lock types. These have little in common: what they write, how they wait, and their order.
scopeContract('spin');
scopeContract('redisson-fair');
