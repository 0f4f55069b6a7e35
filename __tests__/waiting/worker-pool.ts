import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { compiled } from '../support/compiled';
import type { Answer, Task } from './worker';

const children = new Set<ChildProcess>();

// A failing test may not reach its own cleanup, and a child process keeps Jest alive.
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

/** Worker processes for the tests of one file. */
export class WorkerPool {
  readonly #children: readonly ChildProcess[];

  static async start(size: number): Promise<WorkerPool> {
    const workers = new WorkerPool(size);
    await Promise.all(workers.#children.map(answerOf));
    return workers;
  }

  private constructor(size: number) {
    this.#children = Array.from({ length: size }, () => {
      const child = fork(compiled(join(__dirname, 'worker.ts')), {
        execArgv: [],
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      children.add(child);
      return child;
    });
  }

  /** Executes the task in every process at the same time. */
  run(task: Task): Promise<Answer[]> {
    return Promise.all(
      this.#children.map((child) => {
        child.send(task);
        return answerOf(child);
      }),
    );
  }

  get size(): number {
    return this.#children.length;
  }
}

async function answerOf(child: ChildProcess): Promise<Answer> {
  const stop = new AbortController();
  const ended = once(child, 'exit', { signal: stop.signal }).then(([code]) => {
    throw new Error(`A worker process ended: ${code}`);
  });
  try {
    const [answer] = (await Promise.race([once(child, 'message', { signal: stop.signal }), ended])) as [Answer];
    return answer;
  } finally {
    ended.catch(() => {}); // rejects by the `abort` below
    stop.abort();
  }
}
