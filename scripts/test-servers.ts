import { createClient } from 'redis';
import { type EmbeddedRedis, installEmbeddedRedis, startEmbeddedRedis } from '../support/embedded-redis/start';
import { startRedis } from '../support/redis';
import { findRedisBinary, howToGetRedis } from '../support/redis-binary';
import { installRedis } from '../support/redis-install';

/** The servers of one test run. The tests run in a sandbox and read `environment` from their process. */
export interface TestServers {
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

interface RealRedis {
  readonly description: string;
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Each worker has its own servers, so that a test counts only its own commands. */
export async function startTestServers(workers: number): Promise<TestServers> {
  const real = await startRealRedis(workers);
  if (!real && isSet('CI', 'REQUIRE_REAL_REDIS')) {
    throw new Error(`This run (CI or REQUIRE_REAL_REDIS) needs a real Redis, and there is none. ${howToGetRedis}`);
  }
  const embedded = await startEmbedded(workers);
  const leftOut = [
    ...(real ? [] : [`the tests that need a real Redis. ${howToGetRedis}`]),
    ...(embedded.length > 0 ? [] : ['the contract on js-redis-server, which could not be installed']),
  ];
  return {
    environment: {
      ...real?.environment,
      ...(embedded.length > 0 ? { TEST_EMBEDDED_URLS: embedded.map(({ url }) => url).join() } : {}),
      TEST_AGAINST: describe(real, embedded[0]),
      ...(leftOut.length > 0 ? { TEST_LEFT_OUT: leftOut.join('; ') } : {}),
    },
    async stop() {
      await Promise.all([real?.stop(), ...embedded.map((server) => server.stop())]);
    },
  };
}

/** None where js-redis-server cannot be installed, except in CI, where that is a failure. */
async function startEmbedded(instances: number): Promise<EmbeddedRedis[]> {
  try {
    installEmbeddedRedis();
  } catch (error) {
    if (isSet('CI')) throw error;
    console.warn((error as Error).message);
    return [];
  }
  return Promise.all(Array.from({ length: instances }, () => startEmbeddedRedis()));
}

/** The server that REDIS_URL names, else private instances. Where no server is installed, one is fetched if allowed. */
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
