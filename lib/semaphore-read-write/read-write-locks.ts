import { CannotAcquireLockError } from '../errors';
import type { LockServices, RedisLock } from '../redis-lock';
import { Scope } from '../scope/scope';
import { SharedLock } from './shared-lock';

/** The other lock of the same key that is cached, if there is one: a lock with an open scope always is. */
type Counterpart = () => RedisLock | undefined;

/** Readers. Inside a write scope of the caller they enter again on the write lease. */
export class ReadLock extends SharedLock {
  readonly #write: Counterpart;

  /** @internal */
  constructor(key: string, services: LockServices, write: Counterpart) {
    super(key, services);
    this.#write = write;
  }

  override get scopeLock(): RedisLock {
    const write = this.#write();
    return write !== undefined && Scope.holding(write) !== undefined ? write : this;
  }
}

/** Writers. */
export class WriteLock extends SharedLock {
  readonly #read: Counterpart;

  /** @internal */
  constructor(key: string, services: LockServices, read: Counterpart) {
    super(key, services);
    this.#read = read;
  }

  protected override assertMayEnter(): void {
    const read = this.#read();
    if (read === undefined || Scope.holding(read) === undefined) return;
    const why =
      'a writer waits for all readers, so it would wait for itself. Take it for writing first, and read inside';
    throw new CannotAcquireLockError(
      `Lock "${this.key}" could not be acquired for writing inside its own read scope: ${why}`,
      this.key,
    );
  }
}
