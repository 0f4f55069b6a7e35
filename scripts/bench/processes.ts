import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { constants, cpus, setPriority } from 'node:os';
import { spawnGuarded } from '../../support/guarded-process';
import { built } from './prepare';
import type { Calls } from './worker';

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
 * One process for each CPU that is always ready to run, until this process ends: a sleeping CPU takes longer to wake up
 * than a round trip to Redis on loopback takes, and whether it sleeps is random. With the policy "idle" of Linux it runs
 * when nothing else is ready; with the lowest priority alone, newer kernels let it finish its slice of 4 ms first.
 */
export async function keepProcessorsAwake(): Promise<void> {
  for (const cpu of cpus().keys()) {
    const { pid } = await spawnGuarded('/bin/sh', ['-c', 'while :; do :; done']);
    setPriority(pid, constants.priority.PRIORITY_LOW);
    spawnSync('chrt', ['--idle', '--pid', '0', String(pid)], { stdio: 'ignore' });
    lowerSession(pid);
    pinTo(pid, String(cpu));
  }
}

/** Linux may share the time of a CPU among sessions first: the priority of a process counts in its session alone. */
function lowerSession(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(constants.priority.PRIORITY_LOW));
  } catch {
    // There are no such groups here.
  }
}

/** s. A candidate that hangs is a fault. Sixteen processes that start on a busy machine take half a minute. */
const MOST_SECONDS = 120;

/** A candidate cannot run a load. */
export class CandidateFault extends Error {}

/** One process of a candidate, which makes one call after the other. */
export function startProcess() {
  const child = fork(built.worker, {
    env: { ...process.env, NODE_ENV: 'production', NODE_NO_WARNINGS: '1' },
    execArgv: ['--expose-gc'],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 2, 'ipc'],
  });
  pinTo(child.pid, CPU_SETS.clients);
  const exited = once(child, 'exit').then(() => [{ fault: 'its process ended' }]);
  return {
    async call<Name extends keyof Calls>(name: Name, ...args: Parameters<Calls[Name]>) {
      const answer = once(child, 'message', { signal: AbortSignal.timeout(MOST_SECONDS * 1_000) });
      const inTime = answer.catch(() => [{ fault: `no answer for ${MOST_SECONDS} s` }]);
      child.send([name, ...args], () => {}); // where it cannot be sent, the process ends
      const [{ fault, result }] = await Promise.race([inTime, exited]);
      if (fault !== undefined) throw new CandidateFault(fault);
      return result as Awaited<ReturnType<Calls[Name]>>;
    },
    async end(): Promise<void> {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
