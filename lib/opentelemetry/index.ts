export { type InstrumentLocksOptions, instrumentLocks, type LockInstrumentation } from './instrument-locks';
