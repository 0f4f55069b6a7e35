import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { constants, cpus, setPriority } from 'node:os';
import { spawnGuarded } from '../../support/guarded-process';
import type { Candidate, OpenOptions } from './candidate';
import { built } from './prepare';
import type { Opening, Reply, Request } from './worker';

const lastCpu = cpus().length - 1;

/**
 * The server has one CPU for itself, as it has its own machine in production. Without this, the scheduler may or may not
 * put a client on the server's CPU, which changes a round trip on loopback by a factor of three.
 */
export const CPU_SETS = { server: '0', clients: lastCpu > 1 ? `1-${lastCpu}` : String(lastCpu) } as const;

/** Uses `taskset` of util-linux, where it is there and the machine has several CPUs. */
export function pinTo(pid: number | undefined, cpuSet: string): void {
  if (pid === undefined || lastCpu < 1) return;
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cpuSet, String(pid)], { stdio: 'ignore' });
}

/**
 * One process of the lowest priority for each CPU that is always ready to run, until this process ends: a sleeping CPU
 * takes longer to wake up than a round trip to Redis on loopback takes, and whether it sleeps is random.
 */
export async function keepProcessorsAwake(): Promise<void> {
  for (const cpu of cpus().keys()) {
    const { pid } = await spawnGuarded('/bin/sh', ['-c', 'while :; do :; done']);
    setPriority(pid, constants.priority.PRIORITY_LOW);
    pinTo(pid, String(cpu));
  }
}

/**
 * ms added to the expected duration of a request. A candidate that hangs is reported as a fault. Sixteen processes that
 * start on a busy machine take half a minute.
 */
const REPLY_TIMEOUT = 120_000;

/** A candidate cannot run a load. */
export class CandidateFault extends Error {}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts one process of a candidate. It has connected, and answers requests, one after the other. */
export async function startProcess({ id }: Candidate, options: OpenOptions) {
  const opening = JSON.stringify({ id, ...options } satisfies Opening);
  const child = fork(built.worker, {
    env: { ...process.env, NODE_ENV: 'production', NODE_NO_WARNINGS: '1', BENCH_CANDIDATE: opening },
    execArgv: ['--expose-gc'],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 2, 'ipc'],
  });
  running.add(child);
  const exited = once(child, 'exit').then((): [Reply] => {
    running.delete(child);
    return [{ fault: 'its process ended' }];
  });
  const reply = async (duration: number): Promise<Reply> => {
    const signal = AbortSignal.timeout(duration + REPLY_TIMEOUT);
    const message = once(child, 'message', { signal }).catch(() => [
      { fault: `no answer for ${REPLY_TIMEOUT / 1000} s` },
    ]);
    const [answer] = (await Promise.race([message, exited])) as [Reply];
    if (answer.fault !== undefined) throw new CandidateFault(answer.fault);
    return answer;
  };
  await reply(0);
  pinTo(child.pid, CPU_SETS.clients);
  return {
    request(request: Request): Promise<Reply> {
      const answer = reply('observe' in request ? request.observe : 0);
      child.send(request);
      return answer;
    },
    async end(): Promise<void> {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
