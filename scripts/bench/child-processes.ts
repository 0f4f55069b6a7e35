import { type ChildProcess, fork, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { cpus } from 'node:os';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Address, Candidate, OpenOptions } from './candidates/candidate';
import { CPU_SETS, pinTo } from './cpu-sets';
import type { LoadSpec } from './loads';
import type { Observation } from './loads/load';
import { built } from './prepare';
import type { FrameNode } from './profile/frame-tree';
import { type Language, programs } from './programs';
import type { ProfileKind, WorkerOptions, WorkerReply, WorkerRequest } from './worker';

/**
 * ms added to the expected duration of a request. A candidate that hangs is reported as a fault. Sixteen processes that start
 * on a busy machine take half a minute, and a heap snapshot there a whole one.
 */
const REPLY_TIMEOUT = 120_000;

const running = new Set<ChildProcess>();

/** Kills all child processes of the bench. */
export function killProcesses(): void {
  for (const child of running) child.kill('SIGKILL');
}

/** Starts one busy process for each CPU; they run until `killProcesses`. */
export function keepProcessorsAwake(): void {
  for (const [cpu] of cpus().entries()) pinTo(start(built.busyProcess, {}).pid, String(cpu));
}

function start(script: string, env: Record<string, string>): ChildProcess {
  const child = fork(script, {
    env: { ...process.env, NODE_ENV: 'production', NODE_NO_WARNINGS: '1', ...env },
    execArgv: ['--expose-gc'],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 2, 'ipc'],
  });
  return remember(child);
}

function remember(child: ChildProcess): ChildProcess {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** A child process, and how messages are exchanged with it. */
interface Worker {
  readonly child: ChildProcess;
  /** Emits 'message'. */
  readonly replies: EventEmitter;
  send(request: WorkerRequest): void;
}

function startNodeWorker(options: WorkerOptions): Worker {
  const child = start(built.worker, { BENCH_WORKER: JSON.stringify(options) });
  return { child, replies: child, send: (request) => child.send(request) };
}

/** A program in another language: messages are lines of JSON, in which null stands for Infinity. */
function startProgram(language: Language, { candidate, address, ttl }: WorkerOptions): Worker {
  const [command, ...args] = programs[language].run;
  const child = spawn(command, [...args, candidate, address.host, String(address.port), String(ttl)], {
    stdio: ['pipe', 'pipe', 2],
  });
  remember(child);
  const replies = new EventEmitter();
  const toMessage = (line: string) => JSON.parse(line, (_, value) => value ?? Number.POSITIVE_INFINITY);
  createInterface({ input: child.stdout as Readable }).on('line', (line) => replies.emit('message', toMessage(line)));
  child.on('error', () => undefined); // 'exit' or the missing reply reports it
  child.stdin?.on('error', () => undefined);
  return { child, replies, send: (request) => child.stdin?.write(`${JSON.stringify(request)}\n`) };
}

export interface ProfiledObservation {
  readonly observation: Observation;
  readonly profile: FrameNode;
}

/** One process of a candidate. */
export class CandidateProcess {
  readonly #worker: Worker;
  readonly #exited: Promise<WorkerReply>;

  static async start({ id, language }: Candidate, options: OpenOptions): Promise<CandidateProcess> {
    const workerOptions: WorkerOptions = { candidate: id, ...options };
    const worker = language === undefined ? startNodeWorker(workerOptions) : startProgram(language, workerOptions);
    const candidateProcess = new CandidateProcess(worker);
    await candidateProcess.#reply(0);
    pinTo(worker.child.pid, CPU_SETS.clients);
    return candidateProcess;
  }

  private constructor(worker: Worker) {
    this.#worker = worker;
    this.#exited = once(worker.child, 'exit').then(() => ({ fault: 'its process ended' }));
  }

  async begin(load: LoadSpec): Promise<void> {
    await this.#request(load, 0);
  }

  /** `isWarmUp`: the load may run at a faster pace. */
  async observe(ms: number, isWarmUp = false): Promise<Observation> {
    const { observation } = await this.#request({ observe: ms, isWarmUp }, ms);
    return observation as Observation;
  }

  /** Observes with a profiler, which slows the process down. */
  async profile(ms: number, profile: ProfileKind): Promise<ProfiledObservation> {
    return (await this.#request({ observe: ms, profile }, ms)) as ProfiledObservation;
  }

  async end(): Promise<void> {
    await end(this.#worker.child);
  }

  async #request(request: WorkerRequest, duration: number): Promise<Partial<ProfiledObservation>> {
    const reply = this.#reply(duration);
    this.#worker.send(request);
    return reply;
  }

  async #reply(duration: number): Promise<Partial<ProfiledObservation>> {
    const settled = new AbortController();
    const timeout = sleep(duration + REPLY_TIMEOUT, undefined, { signal: settled.signal, ref: false });
    try {
      const reply = await Promise.race([
        once(this.#worker.replies, 'message', { signal: settled.signal }).then(([message]) => message as WorkerReply),
        this.#exited,
        timeout.then((): WorkerReply => ({ fault: `no answer for ${REPLY_TIMEOUT / 1000} s` })),
      ]);
      if ('fault' in reply) throw new CandidateFault(reply.fault);
      return reply;
    } finally {
      timeout.catch(() => {}); // rejects when it is aborted here
      settled.abort();
    }
  }
}

/** A candidate cannot run a load. */
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
