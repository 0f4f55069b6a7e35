import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import type { Answer, Task } from './worker';

const members = new Set<ChildProcess>();

// Not left to the tests, which may fail before they come to it: a child keeps Jest alive.
afterAll(() => {
  for (const child of members) child.kill('SIGKILL');
  members.clear();
});

/** Processes whose callers want the same lock, for the tests of one file. */
export class WorkerPool {
  readonly #members: readonly ChildProcess[];

  static async start(size: number): Promise<WorkerPool> {
    const workers = new WorkerPool(size);
    await Promise.all(workers.#members.map(answerOf));
    return workers;
  }

  private constructor(size: number) {
    this.#members = Array.from({ length: size }, () => {
      const child = fork(join(__dirname, 'workers-member.ts'), {
        execArgv: ['-r', require.resolve('esbuild-register')],
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      members.add(child);
      return child;
    });
  }

  /** Every process does the same, at the same time. */
  do(task: Task): Promise<Answer[]> {
    return Promise.all(
      this.#members.map((child) => {
        child.send(task);
        return answerOf(child);
      }),
    );
  }

  get size(): number {
    return this.#members.length;
  }
}

async function answerOf(child: ChildProcess): Promise<Answer> {
  const stop = new AbortController();
  const ended = once(child, 'exit', { signal: stop.signal }).then(([code]) => {
    throw new Error(`A process of the workers ended: ${code}`);
  });
  try {
    const [answer] = (await Promise.race([once(child, 'message', { signal: stop.signal }), ended])) as [Answer];
    return answer;
  } finally {
    ended.catch(() => {}); // `abort` ends what lost the race
    stop.abort();
  }
}
