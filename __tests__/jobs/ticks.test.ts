import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { until } from '../support/until';
import { WorkerProcess } from '../support/worker-process';
import type { Attempt, TickJob, TickReport } from './tick-worker';

const PROCESSES = 10;

/** ms */
const MIN_HOLD = 1_000;
/** ms by which the clock of each process is behind that of the one before it: 0 to 900 ms in all. */
const SKEW = 100;

/** `TEST_TICKS=30` for a long run. */
const TICKS = Number(process.env.TEST_TICKS ?? 4);

/** On a busy machine an attempt may come later than its skew says: then its tick proves less, and another one follows. */
const MOST_TICKS = 4 * TICKS;

async function startMachine(job: TickJob) {
  const machine = await WorkerProcess.start<TickJob, TickReport>(join(__dirname, 'tick-worker.ts'));
  await machine.begin(job);
  await machine.next('set up');
  return async (delay: number): Promise<Attempt> => {
    await sleep(delay);
    machine.send({});
    return (await machine.next('tried')).attempt;
  };
}

describePrivate('cron on ten machines', () => {
  const redis = PrivateRedis.install();

  it(
    'runs a job of 5 ms once for each tick, with clocks that are 0 to 900 ms apart and a minHold of 1 s',
    async () => {
      const job: TickJob = {
        redis: { socket: redis.address },
        registryKey: 'cron',
        lockType: 'spin',
        minHold: MIN_HOLD,
      };
      const machines = await Promise.all(Array.from({ length: PROCESSES }, () => startMachine(job)));
      const runs: Attempt[] = [];
      let proven = 0;
      for (let tick = 0; proven < TICKS && tick < MOST_TICKS; tick++) {
        // Another machine is the first one in each tick.
        const attempts = await Promise.all(machines.map((machine, i) => machine(((i + tick) % PROCESSES) * SKEW)));
        const ran = attempts.filter((attempt) => attempt.ran);
        const [first] = ran.sort((one, other) => one.to - other.to);
        expect(first).toBeDefined();
        const last = Math.max(...attempts.map(({ to }) => to));
        if (last < (first as Attempt).from + MIN_HOLD) {
          expect(ran).toHaveLength(1);
          proven++;
        }
        runs.push(...ran);
        await until(async () => (await redis.admin.exists('cron:job')) === 0);
      }
      expect(proven).toBe(TICKS);
      // In every tick, also of a machine that is late: two runs are so far apart.
      runs.forEach(({ to }, i) => {
        const before = runs[i - 1];
        if (before !== undefined) expect(to - before.from).toBeGreaterThanOrEqual(MIN_HOLD);
      });
    },
    MOST_TICKS * 3_000 + 60_000,
  );
});
