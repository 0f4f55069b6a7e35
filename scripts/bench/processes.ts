import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Address, OpenOptions } from './candidates/candidate';
import type { LoadOrder } from './loads';
import type { Observation } from './loads/load';
import { built } from './prepare';
import { confine, SHARES } from './processors';
import type { Engagement, Order, Report } from './worker';

/** ms that an order may take longer than it should: a candidate that hangs is a result too. */
const PATIENCE = 15_000;

const running = new Set<ChildProcess>();

/** So that nothing is left when the bench is interrupted. */
export function endProcesses(): void {
  for (const child of running) child.kill('SIGKILL');
}

/** Until `endProcesses`. */
export function keepProcessorsAwake(): void {
  for (const [processor] of cpus().entries()) confine(start(built.spinner, {}).pid, String(processor));
}

function start(script: string, env: Record<string, string>): ChildProcess {
  const child = fork(script, {
    env: { ...process.env, NODE_ENV: 'production', NODE_NO_WARNINGS: '1', BENCH_LIBRARY: built.library, ...env },
    execArgv: ['--expose-gc'],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 2, 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** A process of a candidate, seen from the bench. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #ended: Promise<Report>;

  static async start(candidate: string, options: OpenOptions): Promise<Worker> {
    const engagement: Engagement = { candidate, ...options };
    const child = start(built.worker, { BENCH_ENGAGEMENT: JSON.stringify(engagement) });
    const worker = new Worker(child);
    await worker.#report(0);
    confine(child.pid, SHARES.clients);
    return worker;
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#ended = once(child, 'exit').then(() => ({ fault: 'its process ended' }));
  }

  async begin(order: LoadOrder): Promise<void> {
    await this.#carryOut(order, 0);
  }

  async observe(ms: number): Promise<Observation> {
    const { observation } = await this.#carryOut({ observe: ms }, ms);
    return observation as Observation;
  }

  async end(): Promise<void> {
    await end(this.#child);
  }

  async #carryOut(order: Order, duration: number): Promise<{ observation?: Observation }> {
    const reported = this.#report(duration);
    this.#child.send(order);
    return reported;
  }

  async #report(duration: number): Promise<{ observation?: Observation }> {
    const silence = new AbortController();
    const late = sleep(duration + PATIENCE, undefined, { signal: silence.signal, ref: false });
    try {
      const report = await Promise.race([
        once(this.#child, 'message', { signal: silence.signal }).then(([message]) => message as Report),
        this.#ended,
        late.then((): Report => ({ fault: `no answer for ${PATIENCE / 1000} s` })),
      ]);
      if ('fault' in report) throw new CandidateFault(report.fault);
      return report;
    } finally {
      // Whichever of them is left is of no interest.
      late.catch(() => {});
      silence.abort();
    }
  }
}

/** A candidate cannot do what it is to do. */
export class CandidateFault extends Error {}

export interface DelayProxy {
  readonly address: Address;
  end(): Promise<void>;
}

export async function startProxy(address: Address, delay: number): Promise<DelayProxy> {
  const child = start(built.proxy, { BENCH_PROXY: JSON.stringify({ address, delay }) });
  const [proxied] = (await once(child, 'message')) as [Address];
  return { address: proxied, end: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  if (!running.has(child)) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
