import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { CLAIM_WINDOW } from '../../lib/protocols/fair/fair-scripts';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { FairFixture } from './fair-fixture';
import { type FairWorker, startWorkers } from './fair-worker';
import { type Entry, KEY, logOf } from './worker';

const PROCESSES = 8;
const TASKS = 500;
const TTL = 2_000;
const WORK = 12;

/** ms from one call of a process to the next: the calls of all processes take about three seconds. */
const EVERY = 50;

/** ms by which a caller may be in front of one that called before it: as long may a request be on its way. */
const TOLERANCE = 300;

/** ms until a process that runs no script is taken for dead, and its tickets are removed: with the default interval. */
const PROCESS_LIFE = 13_000;

describePrivate(`${TASKS} tasks in ${PROCESSES} processes`, () => {
  const fixture = FairFixture.install();

  it('keep their order though 3 processes are killed, 1 is frozen for long and woken, and callers give up', async () => {
    const workers = await startWorkers(PROCESSES);
    const holder = await fixture.process({ expireAfter: TTL });
    const lease = await holder.obtain(KEY).lock();
    await Promise.all(
      workers.map((worker, i) =>
        worker.begin({
          redis: { socket: fixture.redis.address },
          registryKey: fixture.registryKey,
          expireAfter: TTL,
          task: {
            callers: Math.floor(TASKS / PROCESSES) + (i < TASKS % PROCESSES ? 1 : 0),
            every: EVERY,
            work: WORK,
            aborting: 7,
            abortWithin: 8_000,
          },
        }),
      ),
    );
    await Promise.all(workers.map((worker) => worker.next('called')));
    // Each process has a ticket for its first caller.
    expect(await fixture.admin.zCard(fixture.queue)).toBe(PROCESSES);
    const [frozen, ...others] = workers as [FairWorker, ...FairWorker[]];
    const [killed, living] = [others.slice(0, 3), others.slice(3)];
    frozen.freeze();
    const frozenAt = performance.now();
    const done = Promise.all(living.map((worker) => worker.next('queued')));
    await lease.unlock();
    for (const worker of killed) {
      await sleep(700 + Math.random() * 300);
      await worker.kill();
    }
    await sleep(PROCESS_LIFE + TTL + CLAIM_WINDOW - (performance.now() - frozenAt));
    frozen.thaw();
    const reports = [...(await done), await frozen.next('queued')];
    const log = (await fixture.admin.lRange(logOf(fixture.registryKey), 0, -1)).map(
      (line) => JSON.parse(line) as Entry,
    );

    expect(reports.flatMap(({ failures }) => failures)).toEqual([]);
    const dead = new Set(killed.map(({ pid }) => pid));
    // A process that was killed inside could not say that it left; its key had to end before anybody else came in.
    expect(log.flatMap(({ others: inside }) => inside).filter((pid) => !dead.has(pid))).toEqual([]);
    const tokens = log.map(({ token }) => token);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);

    // The frozen process has lost its turns; all others had them in the order of their calls.
    const awake = log.filter(({ pid }) => pid !== frozen.pid).map(({ called }) => called);
    let latest = 0;
    let early = 0;
    for (const called of awake) {
      latest = Math.max(latest, called);
      early = Math.max(early, latest - called);
    }
    expect(early).toBeLessThan(TOLERANCE + machineDelay());
    const aborted = reports.reduce((sum, report) => sum + report.aborted, 0);
    const survivors = log.filter(({ pid }) => !dead.has(pid)).length;
    const callers = TASKS - killed.length * Math.floor(TASKS / PROCESSES);
    expect(Math.abs(survivors + aborted - callers)).toBeLessThanOrEqual(killed.length);

    await until(async () => (await fixture.keys()).every((name) => /^(log|inside) of/.test(name)), {
      within: PROCESS_LIFE + 2 * TTL + CLAIM_WINDOW,
    });
  });
});
