import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { RedisClientOptions } from 'redis';
import { startMonitor } from '../support/monitor';
import { describeReal, realRedis, uniqueKey } from '../support/redis';
import { until } from '../support/until';
import { WorkerProcess } from '../support/worker-process';
import { SharedFixture } from './shared-fixture';
import type { Job, Report } from './worker';

const PROCESSES = 4;
const CALLERS = 250;
const PERMITS = 20;
/** ms */
const TTL = 2_000;
const MEASURED = 3_000;

type Waiters = WorkerProcess<Job, Report>;

async function startWaiters(job: Omit<Job, 'redis'>): Promise<Waiters> {
  const worker = await WorkerProcess.start<Job, Report>(join(__dirname, 'worker.ts'));
  await worker.begin({ redis: realRedis as RedisClientOptions, ...job });
  return worker;
}

describeReal('A semaphore with 20 permits and 1,000 waiters in 4 processes', () => {
  const fixture = SharedFixture.install();

  it('costs each process under 2 requests a second, and never has over 20 inside, though one is killed', async () => {
    const { registryKey } = fixture;
    const inside = uniqueKey('inside');
    const holder = (await fixture.registry()).semaphore('key', { permits: PERMITS });
    const held = await Promise.all(Array.from({ length: PERMITS }, () => holder.lock()));
    const job = { registryKey, permits: PERMITS, expireAfter: TTL, callers: CALLERS, inside };
    const workers = await Promise.all(Array.from({ length: PROCESSES }, () => startWaiters(job)));
    const [victim, ...others] = workers as [Waiters, ...Waiters[]];
    await fixture.queued('key', PROCESSES);
    await sleep(500); // their subscriptions are open

    const monitor = await startMonitor();
    const startedAt = performance.now();
    await sleep(MEASURED);
    await monitor.settle();
    const seconds = (performance.now() - startedAt) / 1_000;
    const requests = monitor.commands.filter(
      ({ source, args }) => source !== 'lua' && args.some((text) => text.includes(registryKey)),
    ).length;
    monitor.stop();
    // 20 leases of 60 s are not renewed meanwhile. A poll that falls on the edge counts once more.
    expect(requests / PROCESSES).toBeLessThan(2 * seconds);

    await Promise.all(held.map((lease) => lease.unlock()));
    await until(async () => (await fixture.client.zCard(inside)) > PERMITS / 2);
    await sleep(200);
    await victim.kill();
    const reports = await Promise.all(others.map((worker) => worker.next('done')));
    expect(reports.map(({ entered }) => entered)).toEqual(others.map(() => CALLERS));
    const most = Math.max(...reports.map((report) => report.most));
    expect(most).toBeLessThanOrEqual(PERMITS);
    expect(most).toBeGreaterThan(PERMITS / 2);
    // What the victim had ends by itself.
    await until(async () => (await fixture.keys()).length === 0);
    await fixture.client.del(inside);
  });
});
