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

/** Each worker has servers of its own, so that what a test counts at the server is its own doing. */
export async function startTestServers(workers: number): Promise<TestServers> {
  const real = await startRealRedis(workers);
  if (!real && isSet('CI', 'REQUIRE_REAL_REDIS')) {
    throw new Error(`This run (CI or REQUIRE_REAL_REDIS) needs a real Redis, and there is none. ${howToGetRedis}`);
  }
  const embedded = await Promise.all(Array.from({ length: workers }, () => startEmbeddedRedis()));
  return {
    environment: {
      ...real?.environment,
      TEST_EMBEDDED_URLS: embedded.map(({ url }) => url).join(),
      TEST_AGAINST: describe(real, embedded[0]),
      ...(real ? {} : { TEST_LEFT_OUT: `the tests that need a real Redis. ${howToGetRedis}` }),
    },
    async stop() {
      await Promise.all([real?.stop(), ...embedded.map((server) => server.stop())]);
    },
  };
}

/** The one that REDIS_URL names, else a private instance, for which a server is fetched where that is allowed. */
async function startRealRedis(instances: number): Promise<RealRedis | undefined> {
  const url = process.env.REDIS_URL;
  if (url) {
    return {
      description: `${await identify(url)} (REDIS_URL)`,
      environment: { TEST_REDIS_URL: url },
      stop: async () => {},
    };
  }
  if (!findRedisBinary() && !(await fetchRedis())) return undefined;
  const servers = await Promise.all(Array.from({ length: instances }, () => startRedis()));
  const [{ name, version } = { name: '', version: '' }] = servers;
  return {
    description: `${name} ${version} (private instance)`,
    environment: { TEST_REDIS_SOCKETS: servers.map(({ address }) => (address as { path: string }).path).join() },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()));
    },
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

function describe(real: RealRedis | undefined, embedded: EmbeddedRedis | undefined): string {
  return [real?.description, embedded && `${embedded.name} ${embedded.version}`].filter(Boolean).join(', ');
}

function isSet(...names: readonly string[]): boolean {
  return names.some((name) => !['', '0', 'false', undefined].includes(process.env[name]));
}
