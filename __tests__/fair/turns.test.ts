import { expect, it } from '@jest/globals';
import { describePrivate } from '../support/private-redis';
import { FairFixture } from './fair-fixture';
import { startWorkers } from './fair-worker';
import { StallWatch, worstOf } from './stalls';

const PROCESSES = 4;
const CALLERS = 10;
const TASKS = PROCESSES * CALLERS;
const WORK = 5;
const DURATION = 10_000;

describePrivate(`${PROCESSES} processes with ${CALLERS} tasks each that take turns with ${WORK} ms of work`, () => {
  const fixture = FairFixture.install();

  it('have the same number of turns to within 2, and no caller enters twice during one wait', async () => {
    const workers = await startWorkers(PROCESSES);
    const begin = Date.now() + 1_500;
    const task = { name: 'turns', callers: CALLERS, work: WORK, begin, duration: DURATION } as const;
    await Promise.all(
      workers.map((worker) =>
        worker.begin({
          redis: { socket: fixture.redis.address },
          registryKey: fixture.registryKey,
          expireAfter: 60_000,
          task,
        }),
      ),
    );
    const server = new StallWatch(() => fixture.admin.ping());
    const reports = await Promise.all(workers.map((worker) => worker.next('turned')));
    server.stop();
    const turns = reports.flatMap((report) => report.turns);
    const waited = reports.flatMap((report) => report.waits);
    const total = turns.reduce((sum, n) => sum + n, 0);
    const turn = DURATION / total;
    // Delays of the machine are not delays of the lock; they are short on an idle machine.
    const stalls = [...server.stalls, ...reports.flatMap((report) => report.stalls)];
    const inTurns = Math.max(
      ...waited.map(
        ({ called, entered }) => waited.filter((other) => other.entered > called && other.entered < entered).length,
      ),
    );
    // Callers that may acquire again while a call is delayed on its way to the queue.
    const heldUp = Math.ceil(worstOf(stalls, turn) / turn);
    // Each other caller has entered once, and the holder at the time of the call.
    expect(inTurns).toBeLessThanOrEqual(TASKS + heldUp);
    expect(turns).toHaveLength(TASKS);
    expect(Math.max(...turns) - Math.min(...turns)).toBeLessThanOrEqual(2);
  });
});
