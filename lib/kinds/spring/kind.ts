import type { RegistrySettings } from '../../api/options';
import { type LockNames, legacyChannel } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { contended } from '../common/contended';
import { lockScripts } from '../common/lock-scripts';
import type { LockTypeDefinition } from '../common/registry-parts';
import { MOST_AHEAD } from '../common/script-parts';
import { ScriptedFormat } from '../common/scripted-format';

/*
 * The lock as a string key, in the format of Spring Integration's RedisLockRegistry: the value is the owner, and the
 * key always has an expiry. Spring compares owners only with its own, so ours may differ with every acquisition: then
 * a late or repeated command of an earlier holder can never touch a later one.
 */

export const SPRING_SCRIPTS = lockScripts('spring', {
  IS_GIVEN: 'found == to',
  MESSAGE_LEFT: 'left to pollers',
});

/** Spring's string key. */
export class SpringFormat extends ScriptedFormat {
  readonly #legacyChannels: readonly string[];
  readonly #notification: readonly string[];

  constructor(redis: Redis, settings: RegistrySettings) {
    super(redis, settings.fencing, SPRING_SCRIPTS, false);
    const channel = legacyChannel(settings.registryKey);
    this.#legacyChannels = settings.legacyChannel ? [channel] : [];
    this.#notification = settings.legacyChannel ? [channel, 'too'] : [channel];
  }

  channels(names: LockNames): readonly string[] {
    return [names.channel, ...this.#legacyChannels];
  }

  protected releaseOf({ lock }: LockNames): string {
    return lock;
  }

  notification(_names: LockNames): readonly string[] {
    return this.#notification;
  }

  tokensFor(): number {
    return MOST_AHEAD;
  }

  protected fence(names: LockNames): string {
    return names.companion('fence');
  }
}

/** Contended on Spring's format: `spin` waits by polling and yields after time slices, `pub-sub` is notified. */
export const SPRING: LockTypeDefinition = (parts) => contended(parts, new SpringFormat(parts.redis, parts.settings));
