import { type ProtocolSettings, SHARDED_SUBSCRIPTION_MODES } from './core/protocol';
import { boolean, type Check, checkOptions, duration, notNegative, oneOf, wholeNumber } from './internal/validation';
import type { RedisLockRegistryOptions } from './options';
import { describeValue } from './redis/client';
import { isSubscriber, type RedisSubscriber } from './redis/subscriber-connection';
import { type RegistrySettings, registryChecks, registrySettings } from './settings';

/** The options of a `RedisLockRegistry` with their defaults filled in. */
export interface RedisSettings extends RegistrySettings, ProtocolSettings {}

const redisChecks: { [Name in keyof RedisSettings]: Check<RedisSettings[Name]> } = {
  ...registryChecks,
  idleBetweenTries: duration,
  handOver: notNegative,
  sharedWithPollers: boolean,
  legacyChannel: boolean,
  shardedSubscriptionMode: oneOf(SHARDED_SUBSCRIPTION_MODES),
  fairLockWaitTimeout: duration,
  minReplicas: (name, value) => wholeNumber(name, value, 0),
  replicaTimeout: duration,
  subscriber,
};

export function redisSettings(options: RedisLockRegistryOptions): RedisSettings {
  checkOptions(redisChecks, options);
  return {
    ...registrySettings(options, 'spin'),
    idleBetweenTries: options.idleBetweenTries ?? 100,
    handOver: options.handOver,
    sharedWithPollers: options.sharedWithPollers ?? false,
    legacyChannel: options.legacyChannel ?? false,
    shardedSubscriptionMode: options.shardedSubscriptionMode ?? 'auto',
    fairLockWaitTimeout: options.fairLockWaitTimeout ?? 300_000,
    minReplicas: options.minReplicas ?? 0,
    replicaTimeout: options.replicaTimeout ?? 100,
    subscriber: options.subscriber,
  };
}

function subscriber(name: string, value: unknown): RedisSubscriber {
  if (!isSubscriber(value)) {
    const expectation = `Expected \`${name}\` to be a client with the methods subscribe and unsubscribe`;
    throw new TypeError(`${expectation}, got ${describeValue(value)}`);
  }
  return value;
}
