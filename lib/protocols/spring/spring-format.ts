import type { ProtocolSettings } from '../../core/protocol';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { ScriptedFormat } from '../format/scripted-format';
import { KEEP } from './keep-script';
import { ACQUIRE, CONFIRM, CONFIRM_OR_RELEASE, LEAVE, LEFT_TO_POLLERS, NOTIFY, RELEASE, RENEW } from './spring-scripts';

/** Spring's string key: see spring-scripts.ts. */
export class SpringFormat extends ScriptedFormat {
  readonly isSharded = false;
  readonly countsListeners: boolean;
  readonly #legacyChannel: boolean;
  /** Made for the first lock: it is the same for all locks of the registry. */
  #notification: readonly string[] | undefined;

  constructor(redis: Redis, { fencing, legacyChannel }: ProtocolSettings) {
    super(redis, fencing, { ACQUIRE, RELEASE, LEAVE, KEEP, NOTIFY, CONFIRM_OR_RELEASE, RENEW, CONFIRM });
    this.countsListeners = !redis.isCluster;
    this.#legacyChannel = legacyChannel;
  }

  channels(names: LockNames): readonly string[] {
    return this.#legacyChannel ? [names.channel, names.legacyChannel] : [names.channel];
  }

  isRelease(message: string, names: LockNames): boolean {
    return message === names.lock;
  }

  isLeftToPollers(message: string): boolean {
    return message === LEFT_TO_POLLERS;
  }

  notification(names: LockNames): readonly string[] {
    this.#notification ??= this.#legacyChannel ? [names.legacyChannel, 'too'] : [names.legacyChannel];
    return this.#notification;
  }

  protected fence(names: LockNames): string {
    return names.companion('fence');
  }
}
