import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Address, Candidate, OpenOptions } from './candidate';
import { built } from './prepare';
import { CPU_SETS, pinTo } from './server';
import type { Reply, Request, Role } from './worker';

/**
 * ms added to the expected duration of a request. A candidate that hangs is reported as a fault. Sixteen processes that
 * start on a busy machine take half a minute.
 */
const REPLY_TIMEOUT = 120_000;

/** A candidate cannot run a load. */
export class CandidateFault extends Error {}

const running = new Set<ChildProcess>();

/** Kills all child processes of the bench. */
export function killProcesses(): void {
  for (const child of running) child.kill('SIGKILL');
}

/** Starts one busy process for each CPU; they run until `killProcesses`. */
export function keepProcessorsAwake(): void {
  for (const cpu of cpus().keys()) pinTo(forkWorker({ role: 'awake' }).pid, String(cpu));
}

function forkWorker(role: Role): ChildProcess {
  const environment = { NODE_ENV: 'production', NODE_NO_WARNINGS: '1', BENCH_ROLE: JSON.stringify(role) };
  const child = fork(built.worker, {
    env: { ...process.env, ...environment },
    execArgv: ['--expose-gc'],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 2, 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** A child process that answers requests, one after the other. */
export class BenchProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<Reply>;

  /** One process of a candidate. Resolves when it has connected. */
  static async start({ id }: Candidate, options: OpenOptions): Promise<BenchProcess> {
    const started = new BenchProcess({ role: 'candidate', id, ...options });
    await started.#reply(0);
    pinTo(started.#child.pid, CPU_SETS.clients);
    return started;
  }

  /** A proxy in front of the server that delays every byte in both directions, and its address. */
  static async proxy(address: Address, delay: number): Promise<{ process: BenchProcess; proxied: Address }> {
    const started = new BenchProcess({ role: 'proxy', address, delay });
    const { proxied } = await started.#reply(0);
    return { process: started, proxied: proxied as Address };
  }

  private constructor(role: Role) {
    this.#child = forkWorker(role);
    this.#exited = once(this.#child, 'exit').then(() => ({ fault: 'its process ended' }));
  }

  async request(request: Request): Promise<Reply> {
    const reply = this.#reply('observe' in request ? request.observe : 0);
    this.#child.send(request);
    return reply;
  }

  async end(): Promise<void> {
    if (!running.has(this.#child)) return;
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  async #reply(duration: number): Promise<Reply> {
    const settled = new AbortController();
    const { signal } = settled;
    const late: Reply = { fault: `no answer for ${REPLY_TIMEOUT / 1000} s` };
    const message = once(this.#child, 'message', { signal }).then(([reply]) => reply as Reply);
    const timeout = sleep(duration + REPLY_TIMEOUT, late, { signal, ref: false });
    try {
      const reply = await Promise.race([message, this.#exited, timeout]);
      if (reply.fault !== undefined) throw new CandidateFault(reply.fault);
      return reply;
    } finally {
      for (const loser of [message, timeout]) loser.catch(() => {}); // rejects when it is aborted here
      settled.abort();
    }
  }
}
