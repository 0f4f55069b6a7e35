import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '@jest/types';
import { type EmbeddedRedis, installEmbeddedRedis, startEmbeddedRedis } from '../support/embedded-redis/start';
import { identifyServer } from '../support/identify-server';
import { type RedisServer, startRedis } from '../support/redis';
import { findRedisBinary, howToGetRedis } from '../support/redis-binary';
import { installRedis } from '../support/redis-install';
import { bundleClients } from './jest-clients';

declare global {
  /** What the teardown stops. */
  var testServers: readonly { stop(): Promise<void> }[] | undefined;
}

const CACHE = join(__dirname, '../node_modules/.cache');

/**
 * Starts the servers of a run. Each worker has its own, so that a test counts only its own commands. The tests run in a
 * sandbox: what they are to know is in the environment.
 */
export default async function setup({ maxWorkers }: Config.GlobalConfig): Promise<void> {
  const { env } = process;
  await bundleClients();
  const url = env.REDIS_URL;
  const real = url ? [] : await startReal(maxWorkers);
  if (!url && real.length === 0 && isSet('CI', 'REQUIRE_REAL_REDIS')) {
    throw new Error(`This run (CI or REQUIRE_REAL_REDIS) needs a real Redis, and there is none. ${howToGetRedis}`);
  }
  const embedded = await startEmbedded(maxWorkers);
  globalThis.testServers = [...real, ...embedded];

  const against = [...real.slice(0, 1), ...embedded.slice(0, 1)].map(({ name, version }) => `${name} ${version}`);
  if (url) against.unshift(`${await identifyServer(url)} (REDIS_URL)`);
  const leftOut = [
    ...(url || real.length > 0 ? [] : [`the tests that need a real Redis. ${howToGetRedis}`]),
    ...(embedded.length > 0 ? [] : ['the contract on js-redis-server, which could not be installed']),
  ];
  if (url) env.TEST_REDIS_URL = url;
  if (real.length > 0) env.TEST_REDIS_SOCKETS = real.map(({ address }) => (address as { path: string }).path).join();
  if (embedded.length > 0) env.TEST_EMBEDDED_URLS = embedded.map((server) => server.url).join();
  env.TEST_AGAINST = against.join(', ');
  if (leftOut.length > 0) env.TEST_LEFT_OUT = leftOut.join('; ');
  mkdirSync(CACHE, { recursive: true });
  // What the files of one run share. Inside the project, so that programs there find its packages.
  env.TEST_RUN = mkdtempSync(join(CACHE, 'test-run-'));
}

/** Private instances. Where no server is installed, one is fetched if that is allowed; none where that fails. */
async function startReal(instances: number): Promise<RedisServer[]> {
  if (!findRedisBinary()) {
    if (isSet('LOCK_TEST_NO_INSTALL')) return [];
    try {
      await installRedis({ mayChangeSystem: isSet('CI', 'LOCK_TEST_INSTALL') });
    } catch (error) {
      console.warn((error as Error).message);
      return [];
    }
  }
  return Promise.all(Array.from({ length: instances }, () => startRedis()));
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

function isSet(...names: readonly string[]): boolean {
  return names.some((name) => !['', '0', 'false', undefined].includes(process.env[name]));
}
