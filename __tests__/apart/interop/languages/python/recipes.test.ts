import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { transformSync } from 'esbuild';
import { createClient } from 'redis';
import { RedisLockRegistry } from '../../../../../lib';
import { freePort } from '../../../../../support/free-port';
import { type RedisServer, startRedis } from '../../../../../support/redis';
import { until } from '../../../../support/until';
import { cacheOf } from '../cache';
import { blockWith, Steps } from '../recipe';

/** ms, and s; longer than any test takes: who is not notified fails the test. */
const NEVER = 600_000;
const NEVER_S = NEVER / 1_000;

const PYTHON = join(cacheOf('python'), 'bin/python');

let server: RedisServer;
let port: number;
let client: ReturnType<typeof createClient>;

beforeAll(async () => {
  port = await freePort();
  server = await startRedis({ port });
  client = createClient({ socket: { host: '127.0.0.1', port } });
  await client.connect();
});

afterAll(async () => {
  client.destroy();
  await server.stop();
});

const program = (...lines: string[]) => new Steps(PYTHON, ['-u', '-c', lines.join('\n')]);

it('redis-py that publishes after its release wakes a waiter of pub-sub, which does not poll', async () => {
  const key = randomUUID();
  const registry = new RedisLockRegistry(client, {
    registryKey: 'orders',
    lockType: 'pub-sub',
    idleBetweenTries: NEVER,
  });
  const python = program(
    blockWith('py', 'class SharedLock'),
    'import redis',
    `client = redis.Redis(port=${port})`,
    `with client.lock('orders:${key}', timeout=${NEVER_S}, lock_class=SharedLock):`,
    "  print('held')",
    '  input()',
  );
  try {
    expect(await python.next()).toBe('held');
    const entered = registry.obtain(key).lock();
    const channel = `orders-channel:orders:${key}`;
    await until(async () => (await client.pubSubNumSub(channel))[channel] === 1);
    python.goOn();
    await (await entered).unlock();
  } finally {
    await python.end();
    await registry.close();
  }
});

describe('A waiter that waits for a list element', () => {
  /** The function of the page, for this list. */
  function runShared(
    registry: RedisLockRegistry,
    list: string,
  ): (key: string, task: () => Promise<unknown>) => Promise<void> {
    const [source = ''] = /async function runShared.*?^}$/ms.exec(blockWith('ts', 'runShared')) ?? [];
    const { code } = transformSync(source.replace('lock-signal:', list), { loader: 'ts' });
    return new Function('registry', 'client', `${code}; return runShared;`)(registry, client);
  }

  it.each([
    {
      library: 'python-redis-lock',
      list: 'lock-signal:',
      take: (key: string) => ['import redis_lock', `redis_lock.Lock(client, '${key}', expire=${NEVER_S}).acquire()`],
    },
    {
      library: 'walrus',
      list: 'lock.event:',
      take: (key: string) => [
        'import walrus',
        `walrus.Database(port=${port}, socket_timeout=${NEVER_S}, client_name='${key}').lock('${key}', ttl=${NEVER}).acquire()`,
      ],
    },
  ])('A waiter that waits for a list element, $library, has the lock after a push', async ({ list, take }) => {
    const key = randomUUID();
    const registry = new RedisLockRegistry(client, { registryKey: 'lock' });
    const python = program(
      'import redis',
      `client = redis.Redis(port=${port}, socket_timeout=${NEVER_S}, client_name='${key}')`,
      ...take(key),
      "print('held')",
      'input()',
    );
    try {
      const isWaiting = async () => {
        const clients = String(await client.sendCommand(['CLIENT', 'LIST'])).split('\n');
        return clients.some((line) => line.includes(`name=${key}`) && line.includes('cmd=blpop'));
      };
      await runShared(registry, list)(key, () => until(isWaiting));
      expect(await python.next()).toBe('held');
      expect(await registry.obtain(key).tryLock()).toBeNull();
    } finally {
      await python.end();
      await registry.close();
    }
  });
});
