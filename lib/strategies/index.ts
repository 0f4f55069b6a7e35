import type { WarningListener } from '../diagnostics';
import type { Redis } from '../redis/client';
import type { RedisSubscriber } from '../redis/subscriber';
import { FairStrategy } from './fair';
import { PubSubStrategy } from './pub-sub';
import { SpinStrategy } from './spin';
import type { LockStrategy } from './strategy';

/** What a strategy may need to know of its registry. */
export interface StrategySettings {
  readonly idleBetweenTries: number;
  readonly commandTimeout: number;
  readonly fencing: boolean;
  readonly legacyChannel: boolean;
  readonly subscriber: RedisSubscriber | undefined;
  readonly onWarning: WarningListener;
}

/** The kinds of lock. A new one is a file in this folder and a line here. */
const strategies = {
  spin: SpinStrategy,
  'pub-sub': PubSubStrategy,
  fair: FairStrategy,
} satisfies Record<string, new (redis: Redis, settings: StrategySettings) => LockStrategy>;

export type LockType = keyof typeof strategies;

export const LOCK_TYPES = Object.keys(strategies) as LockType[];

export function isLockType(value: string): value is LockType {
  return Object.hasOwn(strategies, value);
}

export function createStrategy(lockType: LockType, redis: Redis, settings: StrategySettings): LockStrategy {
  return new strategies[lockType](redis, settings);
}
