import type { WarningListener } from '../diagnostics';
import type { Redis } from '../redis/client';
import type { RedisSubscriber } from '../redis/subscriber';
import { FairStrategy } from './fair';
import { PubSubStrategy } from './pub-sub';
import { RedissonStrategy } from './redisson';
import { RedissonFairStrategy } from './redisson-fair';
import { SpinStrategy } from './spin';
import type { LockStrategy } from './strategy';

/** What a strategy may need to know of its registry. */
export interface StrategySettings {
  readonly idleBetweenTries: number;
  readonly commandTimeout: number;
  readonly fencing: boolean;
  readonly legacyChannel: boolean;
  readonly shardedSubscriptionMode: ShardedSubscriptionMode;
  readonly fairLockWaitTimeout: number;
  readonly subscriber: RedisSubscriber | undefined;
  readonly onWarning: WarningListener;
}

/** What has to be known of a kind of lock before there is one. */
export interface Conventions {
  /** ms; default of the option `expireAfter`. */
  readonly expireAfter: number;
  /** Whether a lock's name has to begin with a `registryKey`. */
  readonly needsRegistryKey: boolean;
}

interface StrategyClass extends Conventions {
  new (redis: Redis, settings: StrategySettings): LockStrategy;
}

export const SHARDED_SUBSCRIPTION_MODES = ['auto', 'on', 'off'] as const;

export type ShardedSubscriptionMode = (typeof SHARDED_SUBSCRIPTION_MODES)[number];

/** The kinds of lock. A new one is a file in this folder and a line here. */
const strategies = {
  spin: SpinStrategy,
  'pub-sub': PubSubStrategy,
  fair: FairStrategy,
  redisson: RedissonStrategy,
  'redisson-fair': RedissonFairStrategy,
} satisfies Record<string, StrategyClass>;

export type LockType = keyof typeof strategies;

export const LOCK_TYPES = Object.keys(strategies) as LockType[];

export function isLockType(value: string): value is LockType {
  return Object.hasOwn(strategies, value);
}

export function conventionsOf(lockType: LockType): Conventions {
  return strategies[lockType];
}

export function createStrategy(lockType: LockType, redis: Redis, settings: StrategySettings): LockStrategy {
  return new strategies[lockType](redis, settings);
}
