import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface GuardedProcess {
  readonly pid: number;
  /** The last part of its stdout and stderr. */
  readonly log: () => string;
  readonly hasExited: () => boolean;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, then SIGKILL after 2 s for a process that is frozen or too busy. */
  stop(): Promise<void>;
}

/**
 * A shell that kills the command when its stdin ends, that is, when the starting process ends for any reason. An exit
 * handler is not enough: it does not run on SIGKILL, and Jest's sandbox replaces `process`.
 */
const guard = `
exec 3<&0
"$@" </dev/null 3<&- &
command=$!
echo "$command"
{ read -r _ <&3; kill -9 "$command"; } &
wait "$command"
status=$?
kill "$!"
exit "$status"
`;

const logLimit = 8_000;

export async function spawnGuarded(command: string, args: readonly string[]): Promise<GuardedProcess> {
  // Detached, so that Ctrl-C reaches only the caller, which may still need the command to shut down.
  const shell = spawn('/bin/sh', ['-c', guard, 'sh', command, ...args], { detached: true, stdio: 'pipe' });
  let log = '';
  const exited = once(shell, 'exit');
  const [pidLine] = (await once(shell.stdout, 'data')) as [Buffer];
  const text = pidLine.toString();
  const pid = Number.parseInt(text, 10);
  for (const output of [shell.stdout, shell.stderr]) {
    output.on('data', (chunk: Buffer) => {
      log = (log + chunk).slice(-logLimit);
    });
  }
  log = text.slice(text.indexOf('\n') + 1);
  letProcessEnd(shell);

  const hasExited = () => shell.exitCode !== null || shell.signalCode !== null;
  const kill = (signal: NodeJS.Signals) => {
    try {
      if (!hasExited()) process.kill(pid, signal);
    } catch (error) {
      // It has ended, and the guard has not exited yet.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  return {
    pid,
    log: () => log,
    hasExited,
    kill,
    async stop() {
      shell.ref();
      kill('SIGTERM');
      const timeout = setTimeout(kill, 2_000, 'SIGKILL');
      await exited;
      clearTimeout(timeout);
    },
  };
}

/** A command that was not stopped must not keep the caller alive; the guard kills it. */
function letProcessEnd(shell: ChildProcess): void {
  shell.unref();
  for (const stream of shell.stdio) (stream as { unref?(): void } | null)?.unref?.();
}
