import type { ProtocolSettings } from '../../core/protocol';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { ScriptedFormat } from '../format/scripted-format';
import { KEEP } from './keep-script';
import { redissonKey, redissonName } from './redisson-names';
import {
  ACQUIRE,
  CONFIRM,
  CONFIRM_OR_RELEASE,
  LEAVE,
  LEFT_TO_POLLERS,
  NOTIFY,
  RELEASE,
  RENEW,
  UNLOCKED,
} from './redisson-scripts';

/** The prefix of the channel on which releases are published. */
const CHANNEL = 'redisson_lock__channel';

/**
 * The prefix of the counter of fencing tokens, as RFencedLock has it. It is shared with Java, so the rule is
 * Redisson's: plus one for every acquisition by a process that uses tokens. The key is never deleted and has no expiry.
 * Its tokens rise as long as Redis keeps it: after a failover that lost it, or an eviction, it begins again at 1. That
 * is weaker than the fence of the string types, which then takes over from the server's clock.
 */
export const TOKEN = 'redisson_lock_token';

/**
 * Redisson's hash key: see redisson-scripts.ts. A lock's name is that of the Java side: `registryKey:key` (what a
 * NameMapper there makes of it), or the key alone where the registryKey is empty.
 */
export class RedissonFormat extends ScriptedFormat {
  readonly isSharded: boolean;
  readonly countsListeners: boolean;
  readonly #isCluster: boolean;
  readonly #publish: 'PUBLISH' | 'SPUBLISH';

  constructor(redis: Redis, { fencing, shardedSubscriptionMode: mode }: ProtocolSettings) {
    super(redis, fencing, { ACQUIRE, RELEASE, LEAVE, KEEP, NOTIFY, CONFIRM_OR_RELEASE, RENEW, CONFIRM });
    this.#isCluster = redis.isCluster;
    // Redisson's own rule: on a cluster, if the server has sharded channels.
    this.isSharded = mode === 'auto' ? redis.isCluster : mode === 'on';
    this.countsListeners = this.isSharded || !redis.isCluster;
    this.#publish = this.isSharded ? 'SPUBLISH' : 'PUBLISH';
  }

  channel(names: LockNames): string {
    return redissonName(names, CHANNEL);
  }

  channels(names: LockNames): readonly string[] {
    return [this.channel(names)];
  }

  isRelease(message: string): boolean {
    return message === UNLOCKED;
  }

  isLeftToPollers(message: string): boolean {
    return message === LEFT_TO_POLLERS;
  }

  notification(names: LockNames): readonly string[] {
    return [this.#publish, this.channel(names)];
  }

  protected fence(names: LockNames): string {
    return redissonKey(names, TOKEN, this.#isCluster);
  }
}
