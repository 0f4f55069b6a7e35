import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { RedisLockRegistry } from 'redis-lock-registry';
import { scheduleWithCroner, scheduleWithNodeCron } from './jobs.mjs';

/** Each stands for a machine: it has a connection and a registry of its own. */
async function machines(number) {
  return Promise.all(
    Array.from({ length: number }, async (_, i) => {
      const client = await createClient({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' })
        .on('error', console.error)
        .connect();
      return { client, registry: new RedisLockRegistry(client, { registryKey: 'jobs', name: `machine-${i}` }) };
    }),
  );
}

async function shutDown(all) {
  await Promise.all(all.map(({ registry }) => registry.close()));
  for (const { client } of all) client.destroy();
}

/** The second in which each run began. */
function recorder() {
  const seconds = [];
  return { seconds, run: () => void seconds.push(Math.round(Date.now() / 1000)) };
}

function assertOncePerSecond(seconds) {
  assert.ok(seconds.length >= 2, `ran ${seconds.length} times`);
  assert.equal(new Set(seconds).size, seconds.length, `twice in a second: ${seconds}`);
}

test('croner: one of three machines runs the job', async () => {
  const all = await machines(3);
  const { seconds, run } = recorder();
  const jobs = all.map(({ registry }) => scheduleWithCroner(registry, '* * * * * *', 'clean-up', run));
  await sleep(3_500);
  for (const job of jobs) job.stop();
  await shutDown(all);
  assertOncePerSecond(seconds);
});

test('node-cron: one of three machines runs the task', async () => {
  const all = await machines(3);
  const { seconds, run } = recorder();
  const tasks = all.map(({ registry }) => scheduleWithNodeCron(registry, '* * * * * *', 'clean-up', run));
  await sleep(3_500);
  await Promise.all(tasks.map((task) => task.destroy()));
  await shutDown(all);
  assertOncePerSecond(seconds);
});
