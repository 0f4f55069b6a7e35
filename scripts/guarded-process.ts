import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface GuardedProcess {
  readonly pid: number;
  /** The last part of what it wrote to stdout and stderr. */
  readonly log: () => string;
  readonly hasExited: () => boolean;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, and SIGKILL for a process that is frozen or too busy to listen. */
  stop(): Promise<void>;
}

/**
 * The guard is a shell that kills the command when its stdin ends: when the process that started it ends, however that
 * happens. An exit handler would not do, since it does not run on SIGKILL and Jest's sandbox has a `process` of its own.
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
  // Detached, so that Ctrl-C reaches only the caller, who may still need the command for an orderly end.
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
      // It has just ended, and the guard has not noticed yet.
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
      const impatience = setTimeout(kill, 2_000, 'SIGKILL');
      await exited;
      clearTimeout(impatience);
    },
  };
}

/** A command that nobody stopped must not keep the caller alive; the guard ends it. */
function letProcessEnd(shell: ChildProcess): void {
  shell.unref();
  for (const stream of shell.stdio) (stream as { unref?(): void } | null)?.unref?.();
}
