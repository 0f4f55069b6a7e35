import type { RedisLockRegistryOptions } from '../../lib';
import type { FaultyProxy } from '../../support/proxy';
import { connectTo, type PrivateRedis } from './private-redis';
import type { TestClient } from './redis';
import { createRegistry, type TestRegistry } from './test-registry';

/** A registry as of a separate process, with one proxy for its commands and one for the messages it receives. */
export interface ProxiedRegistry extends TestRegistry {
  readonly client: TestClient;
  readonly subscriber: TestClient;
  readonly commands: FaultyProxy;
  readonly messages: FaultyProxy;
  /** Resolves once the messages published so far have been received, and the commands sent for them were answered. */
  settle(): Promise<void>;
}

export async function createProxiedRegistry(
  redis: PrivateRedis,
  options: Omit<RedisLockRegistryOptions, 'registryKey' | 'onWarning' | 'subscriber'> & { registryKey?: string },
): Promise<ProxiedRegistry> {
  const [commands, messages] = await Promise.all([redis.proxy(), redis.proxy()]);
  const [client, subscriber] = await Promise.all([connectTo(commands.address), connectTo(messages.address)]);
  return {
    ...createRegistry(client, { ...options, subscriber }),
    client,
    subscriber,
    commands,
    messages,
    async settle() {
      // Both connections deliver in order. What a message causes may take a few turns of the event loop to be sent.
      await subscriber.ping();
      for (let turn = 0; turn < 5; turn++) {
        await new Promise(setImmediate);
        await client.ping();
      }
    },
  };
}
