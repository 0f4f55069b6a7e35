import { build } from 'esbuild';

/** A worker of Cloudflare: two registries in one request, as two workers would have them. */
export const HTTP_WORKER = `
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
  const warning = new Promise((resolve) => process.once('warning', resolve)); // where warnings go by default
  await one.obtain('abandoned').lock();
  for (const registry of registries) await registry.close({ timeout: 0 });
  return { ...found, warned: (await warning).code };
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

/** The same over TCP: each request makes a client, and a registry for it. `ioredis`: the name of that package. */
export const tcpWorker = (ioredis: string): string => `
import { Redis } from '${ioredis}';
import { createClient } from 'redis';
import { RedisLockRegistry } from 'redis-lock-registry';
import { fromIoredis } from 'redis-lock-registry/ioredis';

const open = {
  redis: async (host, port) => {
    const client = await createClient({ socket: { host, port } }).on('error', () => undefined).connect();
    return [client, () => client.destroy()];
  },
  ioredis: async (host, port) => {
    const redis = new Redis({ host, port });
    return [fromIoredis(redis), () => redis.disconnect()];
  },
};

async function uses(client, lockType) {
  const options = { registryKey: 'tcp-' + lockType, lockType, expireAfter: 900, idleBetweenTries: 50 };
  const [one, other] = [1, 2].map(() => new RedisLockRegistry(client, options));
  const lease = await one.obtain('key').lock();
  const refused = await other.obtain('key').tryLock();
  await new Promise((resolve) => setTimeout(resolve, 2 * options.expireAfter));
  const isRenewed = lease.remaining > 0 && !lease.signal.aborted;
  const waiting = other.run('key', () => 'passed on');
  await lease.unlock();
  const found = { refused, isRenewed, waited: await waiting };
  for (const registry of [one, other]) await registry.close();
  return found;
}

async function found({ HOST, PORT }) {
  const all = {};
  for (const [name, connect] of Object.entries(open)) {
    const [client, end] = await connect(HOST, Number(PORT));
    const each = async (lockType) => Object.assign(all, { [name + ' ' + lockType]: await uses(client, lockType) });
    await Promise.all(['spin', 'pub-sub', 'fair'].map(each));
    end();
  }
  return all;
}

export default {
  async fetch(_request, env) {
    return found(env).then(
      (all) => Response.json(all),
      (error) => Response.json({ failed: error.stack }, { status: 500 }),
    );
  },
};
`;

/** What a worker of HTTP_WORKER answers. */
export const OVER_HTTP = {
  refused: null,
  isRenewed: true,
  hasToken: true,
  waited: 'passed on',
  nested: 'entered again',
  semaphore: 'a permit',
  led: 'led',
  once: 'ran',
  refusal: 'TypeError',
  warned: 'CLOSED_WHILE_HELD',
};

const OVER_TCP = { refused: null, isRenewed: true, waited: 'passed on' };

/** What a worker of `tcpWorker` answers. */
export const allOverTcp = (): Record<string, unknown> => {
  const names = ['redis', 'ioredis'].flatMap((name) => ['spin', 'pub-sub', 'fair'].map((type) => `${name} ${type}`));
  return Object.fromEntries(names.map((name) => [name, OVER_TCP]));
};

/** One ES module whose imports are those of Node only, as wrangler makes it, of a worker in this folder. */
export async function bundleWorker(contents: string, resolveDir: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir },
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
  return outputFiles[0]?.text ?? '';
}
