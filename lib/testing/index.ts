export { InMemoryLockRegistry, type InMemoryLockRegistryOptions } from './in-memory-lock-registry';
export { type InMemoryHolder, InMemoryLocks, type StealOptions, type WhichLock } from './in-memory-locks';
