import { lua } from '../internal/lua';

/** Run by `lease.eval`, so only while the lock is held. */
export const KEEP_RESULT = lua('once/keep-result');
