import type { CloseOptions, RegistryOptions } from '../api/options';
import { type Check, checkOptions, expected } from '../internal/validation';
import { BackedLockRegistry } from '../registry/backed-lock-registry';
import { registryChecks, registrySettings } from '../registry/settings';
import { InMemoryLocks, inMemoryBackend } from './in-memory-locks';

export { type InMemoryHolder, InMemoryLocks, type StealOptions, type WhichLock } from './in-memory-locks';

/**
 * Options of an `InMemoryLockRegistry`: those of a `RedisLockRegistry` that are not about Redis. `lockType` decides on
 * the default of `expireAfter`, and is in the messages of the channels; it is `'fair'` by default, and the locks are as
 * fair with each type.
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
  readonly #backend: ReturnType<typeof inMemoryBackend>;

  /**
   * @throws TypeError when an option is unknown or has a wrong type.
   * @throws RangeError when an option is out of range.
   */
  constructor(options: InMemoryLockRegistryOptions = {}) {
    checkOptions(checks, options);
    const { locks = new InMemoryLocks(), registryKey = 'test', ...others } = options;
    const settings = registrySettings({ ...others, registryKey }, 'fair');
    const backend = inMemoryBackend(locks, settings.fencing);
    super(settings, backend);
    this.#backend = backend;
    this.locks = locks;
    locks.use(registryKey);
  }

  /**
   * As `close` of a `RedisLockRegistry`. With a timeout of 0 it needs no timer, which a test may have faked: what is
   * not answered in a silence fails at once.
   */
  override async close(options: CloseOptions = {}): Promise<void> {
    const closed = super.close(options);
    if (options.timeout === 0) this.#backend.cutOff();
    await closed;
  }
}

const checks: Record<keyof InMemoryLockRegistryOptions, Check<unknown>> = { ...registryChecks, locks: checkedLocks };

function checkedLocks(name: string, value: unknown): InMemoryLocks {
  if (!(value instanceof InMemoryLocks)) throw new TypeError(expected(name, 'an instance of InMemoryLocks', value));
  return value;
}
