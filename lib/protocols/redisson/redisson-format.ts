import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { ScriptedFormat } from '../format/scripted-format';
import type { ProtocolSettings } from '../protocol';
import { KEEP } from './keep-scripts';
import * as scripts from './redisson-scripts';

/** The prefix of the channel on which releases are published. */
export const CHANNEL = 'redisson_lock__channel';

/**
 * The prefix of the counter of fencing tokens, as RFencedLock has it. It is shared with Java, so the rule is
 * Redisson's: plus one for every acquisition by a process that uses tokens. The key is never deleted and has no expiry.
 * Its tokens rise as long as Redis keeps it: after a failover that lost it, or an eviction, it begins again at 1. That
 * is weaker than the fence of the string types, which then takes over from the server's clock.
 */
export const TOKEN = 'redisson_lock_token';

/** Whether releases go over sharded channels. Redisson's own rule: on a cluster, if the server has them. */
export function isShardedFor(redis: Redis, { shardedSubscriptionMode: mode }: ProtocolSettings): boolean {
  return mode === 'auto' ? redis.isCluster : mode === 'on';
}

/**
 * Redisson's hash key: see redisson-scripts.ts. A lock's name is that of the Java side: `registryKey:key` (what a
 * NameMapper there makes of it), or the key alone where the registryKey is empty.
 */
export class RedissonFormat extends ScriptedFormat {
  readonly isSharded: boolean;
  readonly countsListeners: boolean;
  readonly #isCluster: boolean;
  readonly #publish: 'PUBLISH' | 'SPUBLISH';

  constructor(redis: Redis, settings: ProtocolSettings) {
    super(redis, settings.fencing, { ...scripts, KEEP });
    this.#isCluster = redis.isCluster;
    this.isSharded = isShardedFor(redis, settings);
    this.countsListeners = this.isSharded || !redis.isCluster;
    this.#publish = this.isSharded ? 'SPUBLISH' : 'PUBLISH';
  }

  channels(names: LockNames): readonly string[] {
    return [names.redisson(CHANNEL)];
  }

  isRelease(message: string): boolean {
    return message === scripts.UNLOCKED;
  }

  isLeftToPollers(message: string): boolean {
    return message === scripts.LEFT_TO_POLLERS;
  }

  protected notification(names: LockNames): readonly string[] {
    return [this.#publish, ...this.channels(names)];
  }

  protected fence(names: LockNames): string {
    return names.redissonKey(TOKEN, this.#isCluster);
  }
}
