import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';

const last = cpus().length - 1;

/**
 * The server has a processor for itself, as it has a machine of its own elsewhere: whether the scheduler puts a client
 * beside it is chance otherwise, and makes a factor of three for a round trip on loopback.
 */
export const SHARES = { server: '0', clients: last > 1 ? `1-${last}` : String(last) } as const;

/** By util-linux' `taskset`; false where there is none, or there are too few processors to share. */
export function confine(pid: number | undefined, share: string): boolean {
  if (pid === undefined || last < 1) return false;
  return (
    spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', share, String(pid)], { stdio: 'ignore' }).status === 0
  );
}

/** Whether the shares hold on this machine. */
export const isShared = confine(process.pid, `0-${last}`);
