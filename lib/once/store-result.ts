import { lua } from '../internal/lua';

/** Run by `lease.eval`, so only while the lock is held. */
export const STORE_RESULT = lua('once/store-result');
