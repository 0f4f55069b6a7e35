import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, QueueEvents } from 'bullmq';
import { Redis } from 'ioredis';
import { RedisLockRegistry } from 'redis-lock-registry';
import { fromIoredis } from 'redis-lock-registry/ioredis';
import { startWorker, stop } from './worker.mjs';

const connect = () => new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379', { maxRetriesPerRequest: null });

test('jobs of one order run one at a time, in two workers', { timeout: 30_000 }, async () => {
  const running = new Map();
  let overlaps = 0;
  const work = async ({ data: { orderId } }) => {
    const before = running.get(orderId) ?? 0;
    if (before > 0) overlaps++;
    running.set(orderId, before + 1);
    await sleep(30);
    running.set(orderId, running.get(orderId) - 1);
  };
  const workers = [1, 2].map(() => {
    const connection = connect();
    const registry = new RedisLockRegistry(fromIoredis(connection), { registryKey: 'shop' });
    return { connection, registry, worker: startWorker({ connection, registry, work }) };
  });

  const connection = connect();
  const queue = new Queue('orders', { connection });
  const events = new QueueEvents('orders', { connection: connect() });
  const jobs = await queue.addBulk(
    Array.from({ length: 12 }, (_, i) => ({ name: 'change', data: { orderId: i % 3 } })),
  );
  await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
  assert.equal(overlaps, 0);

  await Promise.all(workers.map(stop));
  await events.close();
  await queue.close();
  await connection.quit();
});
