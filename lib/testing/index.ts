import type { RegistryOptions } from '../api/options';
import { knownAcrossCopies } from '../internal/copies';
import { type Checks, checkedOptions, expected } from '../internal/validation';
import { BackedLockRegistry } from '../registry/backed-lock-registry';
import { registryChecks, registrySettings } from '../registry/settings';
import { InMemoryLocks, inMemoryBackend } from './in-memory-locks';

export { type InMemoryHolder, InMemoryLocks, type StealOptions, type WhichLock } from './in-memory-locks';

/**
 * Options of an `InMemoryLockRegistry`: those of a `RedisLockRegistry` that are not about Redis. `lockType` decides on
 * the default of `expireAfter` and on the keys that are refused, and is in the messages of the channels; it is `'fair'` by
 * default, and the locks are as fair with each type.
 */
export interface InMemoryLockRegistryOptions extends RegistryOptions {
  /** @default 'test' */
  registryKey?: string | undefined;
  /**
   * The locks, for several registries that exclude each other.
   * @default locks of its own
   */
  locks?: InMemoryLocks | undefined;
}

/**
 * A registry of locks in memory, for tests without a Redis. Its locks, leases, waits and errors are those of a
 * `RedisLockRegistry`. It excludes callers of this process only.
 *
 * With the fake timers of jest, vitest, sinon, node:test or Bun, time is what these say.
 * @example
 * const registry = new InMemoryLockRegistry();
 * const shop = new Shop(registry);
 * registry.locks.steal('order:42');
 */
export class InMemoryLockRegistry extends BackedLockRegistry {
  readonly locks: InMemoryLocks;

  /**
   * @throws TypeError when an option is unknown or has a wrong type.
   * @throws RangeError when an option is out of range.
   */
  constructor(options: InMemoryLockRegistryOptions = {}) {
    const { locks = new InMemoryLocks(), registryKey = 'test', ...others } = checkedOptions(CHECKS, options);
    const settings = registrySettings({ ...others, registryKey }, 'fair');
    super(settings, inMemoryBackend(locks, settings, others.lockType));
    this.locks = locks;
    locks.use(registryKey);
  }
}

knownAcrossCopies({ InMemoryLocks, InMemoryLockRegistry });

const CHECKS: Checks<InMemoryLockRegistryOptions> = { ...registryChecks, locks: checkedLocks };

function checkedLocks(name: string, value: unknown): InMemoryLocks {
  if (!(value instanceof InMemoryLocks)) throw new TypeError(expected(name, 'an instance of InMemoryLocks', value));
  return value;
}
