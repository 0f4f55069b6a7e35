import type { createClient } from 'redis';
import type { ListedLock } from '../lock-state';
import type { RedisLockRegistryOptions } from '../options';
import { messageOf } from '../redis/failure';
import { RedisLockRegistry } from '../redis-lock-registry';
import { lockTypeOf, type Values } from './arguments';
import { EXIT, ExitError } from './exit-codes';
import { complain } from './output';

/** ms until a Redis that does not answer counts as not there. */
const CONNECT_TIMEOUT = 5_000;

/** A connection and a registry on it. */
export interface Session {
  readonly registry: RedisLockRegistry;
  /** The held locks whose keys match, by key. */
  list(match: string | undefined): Promise<ListedLock[]>;
  close(): Promise<void>;
}

/** Connects. Throws `ExitError` where that fails. */
export async function openSession(values: Values, options: Partial<RedisLockRegistryOptions> = {}): Promise<Session> {
  const lockType = lockTypeOf(values);
  const client = makeClient(values.url ?? process.env.REDIS_URL ?? 'redis://localhost:6379');
  let registry: RedisLockRegistry;
  try {
    registry = new RedisLockRegistry(client, {
      registryKey: values['registry-key'] ?? 'locks',
      lockType,
      name: values.name,
      onWarning: ({ message }) => complain(message),
      ...options,
    });
  } catch (error) {
    throw new ExitError(EXIT.usage, messageOf(error));
  }
  try {
    await client.connect();
  } catch (error) {
    if (client.isOpen) client.destroy();
    // Of several addresses that were tried, the first.
    const first = (error as AggregateError).errors?.[0] ?? error;
    throw new ExitError(EXIT.unavailable, `Redis cannot be reached: ${messageOf(first)}`);
  }
  return {
    registry,
    async list(match) {
      const locks = [];
      for await (const lock of registry.list({ match })) locks.push(lock);
      return locks.sort((a, b) => a.key.localeCompare(b.key));
    },
    async close() {
      await registry.close({ timeout: 0 });
      client.destroy();
    },
  };
}

function makeClient(url: string): ReturnType<typeof createClient> {
  let isConnected = false;
  try {
    // Loaded here: without it, --help works, and its absence gets one clear line.
    const redis = load();
    const client = redis.createClient({
      url,
      socket: {
        connectTimeout: CONNECT_TIMEOUT,
        // A connection that was there is made again; one that was never there is an error.
        reconnectStrategy: (retries) => (isConnected ? Math.min(50 * 2 ** retries, 2_000) : false),
      },
    });
    client.on('error', () => undefined);
    client.on('ready', () => {
      isConnected = true;
    });
    return client as ReturnType<typeof createClient>;
  } catch (error) {
    if (error instanceof ExitError) throw error;
    // The URL is not quoted: it may have a password.
    throw new ExitError(EXIT.usage, `--url is not a URL such as redis://localhost:6379: ${messageOf(error)}`);
  }
}

function load(): { createClient: typeof createClient } {
  try {
    return require('redis');
  } catch {
    throw new ExitError(EXIT.unavailable, 'The package "redis" is missing: npm install redis');
  }
}
