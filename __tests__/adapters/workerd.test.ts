import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { build } from 'esbuild';
import { startWorkerd, type Workerd } from '../../support/workerd/start';
import { ProgramFolder } from '../readme/program-folder';
import { ifBuilt } from '../support/built-package';
import { describePrivate } from '../support/private-redis';

/** A worker of Cloudflare: two registries in one request, as two workers would have them. */
const WORKER = `
import { Redis } from '@upstash/redis/cloudflare';
import { RedisLockRegistry } from 'redis-lock-registry';
import { fromUpstash } from 'redis-lock-registry/upstash';

async function uses(env, options) {
  const redis = Redis.fromEnv(env);
  const registries = [1, 2].map(() => new RedisLockRegistry(fromUpstash(redis), { registryKey: 'edge', ...options }));
  const [one, other] = registries;
  const lease = await one.obtain('key').lock();
  const refused = await other.obtain('key').tryLock();
  await new Promise((resolve) => setTimeout(resolve, 2 * options.expireAfter));
  const { remaining, fencingToken, signal } = lease;
  const waiting = other.run('key', () => 'passed on');
  await lease.unlock();
  const found = {
    refused,
    isRenewed: remaining > 0 && !signal.aborted,
    hasToken: fencingToken > 0,
    waited: await waiting,
    nested: await one.run('key', () => one.run('key', () => 'entered again')),
    semaphore: await one.semaphore('permits', { permits: 2 }).run(() => 'a permit'),
    led: await one.lead('leader', () => 'led'),
    once: await other.once('once', () => 'ran', { keepFor: 1_000 }),
    refusal: await new Promise((resolve) => {
      try {
        new RedisLockRegistry(fromUpstash(redis), { registryKey: 'edge', lockType: 'fair' });
      } catch (error) {
        resolve(error.name);
      }
    }),
  };
  for (const registry of registries) await registry.close();
  return found;
}

export default {
  async fetch(_request, env) {
    const options = { fencing: true, expireAfter: 900, idleBetweenTries: 50 };
    return uses(env, options).then(
      (found) => Response.json(found),
      (error) => Response.json({ failed: error.stack }, { status: 500 }),
    );
  },
};
`;

ifBuilt(describePrivate)('In workerd with nodejs_compat', () => {
  const programs = ProgramFolder.install('workerd');
  let workerd: Workerd;

  beforeAll(async () => {
    const { outputFiles } = await build({
      stdin: { contents: WORKER, resolveDir: programs.folder.path },
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'node',
      target: 'es2022',
      conditions: ['workerd', 'worker'],
      external: ['node:*'],
      // What wrangler does about the modules of Node that CommonJS requires.
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire('/');" },
    });
    const { UPSTASH_REDIS_REST_URL = '', UPSTASH_REDIS_REST_TOKEN = '' } = programs.env;
    const env = { UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN };
    workerd = await startWorkerd(outputFiles[0]?.text ?? '', env);
  }, 300_000);

  afterAll(() => workerd?.stop());

  it('In workerd, locks over HTTP exclude each other, are renewed, wait, and are entered again; in each request anew', async () => {
    for (let request = 0; request < 2; request++) {
      const response = await fetch(workerd.url);
      expect(await response.json()).toEqual({
        refused: null,
        isRenewed: true,
        hasToken: true,
        waited: 'passed on',
        nested: 'entered again',
        semaphore: 'a permit',
        led: 'led',
        once: 'ran',
        refusal: 'TypeError',
      });
    }
  });
});
