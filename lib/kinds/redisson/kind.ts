import type { RegistrySettings } from '../../api/options';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { contended } from '../common/contended';
import { lockScripts } from '../common/lock-scripts';
import type { LockTypeDefinition } from '../common/registry-parts';
import { ScriptedFormat } from '../common/scripted-format';
import { CHANNEL, redissonKey, redissonName, TOKEN } from './keys';

/*
 * The lock as a hash key, in the format of Redisson's locks: one field "<uuid>:<number>", which is the owner; its value
 * is the number of holds of the owner; the key always has an expiry. Redisson compares owners only with its own, so
 * ours may differ with every acquisition. The value is always 1: the scripts set it and do not count, so they are
 * idempotent.
 */

/** The body of the message about a release. Redisson decodes it as a number; anything else breaks its decoder. */
const UNLOCKED = '0';

/** The body of the message that a lock is left to pollers. Redisson knows 0 and 1, and ignores it. */
export const LEFT_TO_POLLERS = '2';

/** What the scripts of hash keys name. */
export const HASH = {
  IS_GIVEN: "redis.pcall('HEXISTS', lock, to) == 1",
  MESSAGE_LEFT: LEFT_TO_POLLERS,
  MESSAGE_UNLOCKED: UNLOCKED,
};

/** The fence is a counter that Redisson's fenced locks have too. */
export const REDISSON_SCRIPTS = lockScripts('redisson', HASH);

/**
 * Redisson's hash key. A lock's name is that of the Java side: `registryKey:key` (what a
 * NameMapper there makes of it), or the key alone where the registryKey is empty.
 */
export class RedissonFormat extends ScriptedFormat {
  constructor(redis: Redis, { fencing, shardedSubscriptionMode: mode }: RegistrySettings) {
    // Redisson's own rule: on a cluster, if the server has sharded channels.
    super(redis, fencing, REDISSON_SCRIPTS, mode === 'auto' ? redis.isCluster : mode === 'on');
  }

  channels(names: LockNames): readonly string[] {
    return [redissonName(names, CHANNEL)];
  }

  /** Scripts publish on sharded channels of the lock's slot only. */
  override assertNames(names: LockNames): void {
    super.assertNames(names);
    if (this.isSharded) redissonKey(names, CHANNEL, this.redis.isCluster);
  }

  protected releaseOf(): string {
    return UNLOCKED;
  }

  notification(names: LockNames): readonly string[] {
    return [this.isSharded ? 'SPUBLISH' : 'PUBLISH', ...this.channels(names)];
  }

  tokensFor(callers: number): number {
    return callers;
  }

  protected fence(names: LockNames): string {
    return redissonKey(names, TOKEN, this.redis.isCluster);
  }
}

/** Contended on Redisson's format, with waiting by notification. */
export const REDISSON: LockTypeDefinition = (parts) =>
  contended(parts, new RedissonFormat(parts.redis, parts.settings));
