import { createClient } from 'redis';
import { type EmbeddedRedis, startEmbeddedRedis } from './embedded-redis';
import { startRedis } from './redis';
import { findRedisBinary, howToGetRedis } from './redis-binary';
import { installRedis } from './redis-install';

/** What one test run uses. The environment is how the tests, which run in a sandbox, get to know it. */
export interface TestServers {
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

interface RealRedis {
  readonly description: string;
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

export async function startTestServers(): Promise<TestServers> {
  const real = await startRealRedis();
  if (!real && isSet('CI', 'REQUIRE_REAL_REDIS')) {
    throw new Error(`This run (CI or REQUIRE_REAL_REDIS) needs a real Redis, and there is none. ${howToGetRedis}`);
  }
  const embedded = await startEmbeddedRedis();
  return {
    environment: {
      ...real?.environment,
      TEST_EMBEDDED_URL: embedded.url,
      TEST_AGAINST: describe(real, embedded),
      ...(real ? {} : { TEST_LEFT_OUT: `the tests that need a real Redis. ${howToGetRedis}` }),
    },
    async stop() {
      await Promise.all([real?.stop(), embedded.stop()]);
    },
  };
}

/** The one that REDIS_URL names, else a private instance, for which a server is fetched where that is allowed. */
async function startRealRedis(): Promise<RealRedis | undefined> {
  const url = process.env.REDIS_URL;
  if (url) {
    return {
      description: `${await identify(url)} (REDIS_URL)`,
      environment: { TEST_REDIS_URL: url },
      stop: async () => {},
    };
  }
  if (!findRedisBinary() && !(await fetchRedis())) return undefined;
  const server = await startRedis();
  return {
    description: `${server.name} ${server.version} (private instance)`,
    environment: { TEST_REDIS_SOCKET: (server.address as { path: string }).path },
    stop: server.stop,
  };
}

async function fetchRedis(): Promise<boolean> {
  if (isSet('LOCK_TEST_NO_INSTALL')) return false;
  try {
    await installRedis({ mayChangeSystem: isSet('CI', 'LOCK_TEST_INSTALL') });
    return true;
  } catch (error) {
    console.warn((error as Error).message);
    return false;
  }
}

async function identify(url: string): Promise<string> {
  const client = createClient({ url, socket: { reconnectStrategy: false, connectTimeout: 5_000 } });
  client.on('error', () => {}); // connect() rejects with it
  try {
    await client.connect();
    const info = await client.info('server');
    const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
    return valkey ? `valkey-server ${valkey}` : `redis-server ${/^redis_version:(\S+)/m.exec(info)?.[1]}`;
  } catch (error) {
    throw new Error(`No Redis answers at REDIS_URL: ${(error as Error).message}`, { cause: error });
  } finally {
    client.destroy();
  }
}

function describe(real: RealRedis | undefined, embedded: EmbeddedRedis): string {
  return [...(real ? [real.description] : []), `${embedded.name} ${embedded.version}`].join(', ');
}

function isSet(...names: readonly string[]): boolean {
  return names.some((name) => !['', '0', 'false', undefined].includes(process.env[name]));
}
