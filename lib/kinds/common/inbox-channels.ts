import { holderOf, isOfLibrary } from '../../api/owner-name';
import type { Inboxes } from '../../core/backend';
import { clock } from '../../internal/clock';
import { WakeTimer } from '../../internal/timers';
import { legacyChannel, lockPrefix } from '../../redis/names';
import { RETRY_AFTER } from '../../redis/subscriber';
import { CHANNEL, redissonName } from '../redisson/keys';
import type { RegistryParts } from './registry-parts';

/**
 * The channel on which the registry of an owner value hears of its leases; `undefined`: the value is of another library.
 * It has the form of the channels of its locks, so that ACL rules for these cover it. No lock's channel has a `@` there.
 */
export function inboxOf(registryKey: string, owner: string): string | undefined {
  const holder = holderOf(owner);
  if (!isOfLibrary(holder)) return undefined;
  const id = `@${holder.slice(0, holder.lastIndexOf(':'))}`;
  // Only the Redisson types have this separator before the random part.
  const isRedisson = id.at(-23) === '/';
  return isRedisson
    ? redissonName({ lock: lockPrefix(registryKey) + id }, CHANNEL)
    : `${legacyChannel(registryKey)}:${id}`;
}

/** The inboxes of registries, as channels. */
export class RedisInboxes implements Inboxes {
  readonly #parts: RegistryParts;
  #begin: () => void = () => undefined;
  #isClosed = false;
  /** Until the inbox is opened again. */
  readonly #retry = new WakeTimer(() => this.#begin(), false);

  constructor(parts: RegistryParts) {
    this.#parts = parts;
  }

  get countsAll(): boolean {
    return !this.#parts.redis.isCluster;
  }

  open(owner: string, receive: (message: string) => void, missed: () => void): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    const subscriber = this.#parts.subscriber(false, false);
    const channel = inboxOf(this.#parts.settings.registryKey, owner) as string;
    const again = (ms: number): void => {
      if (subscriber.mayListen) this.#retry.by(clock.now() + ms);
    };
    return new Promise((resolve) => {
      let times = 0;
      this.#begin = () => {
        const subscription = subscriber.subscribe([channel], receive, 'inbox');
        const before = times;
        const stop = subscription?.onWake(() => {
          // Its connection may be ready before it.
          if (!subscription.isOver && !subscription.isOpen) return;
          resolve();
          // It was ended with its connection, and is opened on the next one; or it never was open.
          if (subscription.isOver) {
            stop?.();
            again(times > before ? 0 : RETRY_AFTER);
          } else if (++times > 1) missed();
        });
        if (subscription !== undefined) return;
        resolve();
        again(RETRY_AFTER);
      };
      this.#begin();
    });
  }

  async send(owner: string, message: string, lock: string, timeout: number): Promise<number> {
    const channel = inboxOf(this.#parts.settings.registryKey, owner);
    return channel === undefined ? 0 : this.#parts.publish('PUBLISH', channel, message, lock, timeout);
  }

  /** Leaves no timer behind, and opens nothing any more. */
  close(): void {
    this.#isClosed = true;
    this.#begin = () => undefined;
    this.#retry.close();
  }
}
