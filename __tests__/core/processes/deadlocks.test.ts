import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { describeReal, realRedis, uniqueKey } from '../../support/redis';
import { WorkerProcess } from '../../support/worker-process';
import type { DeadlockJob, DeadlockReport, Taken } from './deadlock-worker';

/** Two processes, of which each holds what the other waits for. `a`, `b`: how the locks are held. */
async function crosswise(given: Partial<DeadlockJob>, a: Taken['as'] = 'lock', b: Taken['as'] = 'lock') {
  const start = () => WorkerProcess.start<DeadlockJob, DeadlockReport>(join(__dirname, 'deadlock-worker.ts'));
  const [one, another] = await Promise.all([start(), start()]);
  const held = (key: string, as: Taken['as']): Taken => ({ key, as });
  const wanted = (key: string, as: Taken['as']): Taken => ({ key, as: as === 'read' ? 'write' : as });
  const job = {
    redis: realRedis,
    registryKey: uniqueKey('circle'),
    lockType: 'fair',
    by: 'run',
    waitTime: 600,
    attempts: 10,
    ...given,
  };
  await one.begin({ ...job, name: 'web-1', own: held('a', a), wanted: wanted('b', b) } as DeadlockJob);
  await another.begin({
    ...job,
    name: 'web-2',
    own: held('b', b),
    wanted: wanted('a', a),
    waitTime: undefined,
  } as DeadlockJob);
  const [told] = await Promise.all([one.next('done'), another.next('done')]);
  return told;
}

const CIRCLE =
  'The caller is inside a `run` that holds "a", and web-2 holds "b" and waits for "a": this is a deadlock, unless two tasks of web-2 do that';

describeReal('Two processes that wait for each other', () => {
  it.each<[string, Partial<DeadlockJob>, Taken['as']?, Taken['as']?]>([
    ['fair', {}],
    ['redisson-fair', { lockType: 'redisson-fair' }],
    ['semaphores', { lockType: 'spin' }, 'semaphore', 'semaphore'],
    ['a write lock, and one of readers', { lockType: 'spin' }, 'write', 'read'],
    ['readers, and a fair lock', {}, 'read', 'lock'],
  ])('A caller in a circle of two processes is told it, in the warning and in the error: %s', async (_, ...of) => {
    const { errors, warnings } = await crosswise(...of);
    expect(errors.at(-1)).toMatch(/ms: web-2\S+ holds it/);
    expect(errors.at(-1)).toContain(`. ${CIRCLE}`);
    expect(warnings.join('\n')).toContain(`. ${CIRCLE}`);
  });

  it('A caller that has taken its lock by lock() is warned of what may be a circle of two processes', async () => {
    const { warnings } = await crosswise({ by: 'lock', waitTime: 2_000, attempts: 1 });
    expect(warnings.join('\n')).toContain(
      '. This process holds "a", and web-2 holds "b" and waits for "a": by the same tasks, this is a deadlock',
    );
  });

  it.each<[string, Partial<DeadlockJob>, Taken['as']?, Taken['as']?]>([
    ['spin has no queue', { lockType: 'spin', attempts: 2 }],
    ['pub-sub has none', { lockType: 'pub-sub', attempts: 2 }],
  ])('A circle of two processes is not guessed: %s', async (_, ...of) => {
    const { errors, warnings } = await crosswise(...of);
    expect(errors).toHaveLength(2);
    expect([...errors, ...warnings].join('\n')).not.toMatch(/waits for "a": /);
  });
});
