import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';

const last = cpus().length - 1;

/**
 * The server has one CPU for itself, as it has its own machine in production. Without this, the scheduler may or may not
 * put a client on the server's CPU, which changes a round trip on loopback by a factor of three.
 */
export const CPU_SETS = { server: '0', clients: last > 1 ? `1-${last}` : String(last) } as const;

/** Uses `taskset` of util-linux; false where it is missing, or the machine has a single CPU. */
export function pinTo(pid: number | undefined, cpuSet: string): boolean {
  if (pid === undefined || last < 1) return false;
  return (
    spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cpuSet, String(pid)], { stdio: 'ignore' }).status === 0
  );
}

/** Whether CPU sets can be applied on this machine. */
export const isServerAlone = pinTo(process.pid, `0-${last}`);
