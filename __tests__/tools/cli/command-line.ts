import { afterEach } from '@jest/globals';
import { Node } from '../../support/node';
import { installed } from '../../support/private-redis';
import { Program } from '../../support/program';
import { until } from '../../support/until';
import { COMMAND } from './command';

export const LIMIT = { within: 30_000 };

/** Registers the hooks that start a server, for the tests of the surrounding `describe`; and how they call redis-locks. */
export function commandLine() {
  const server = installed(() => Node.start());
  const processes: Program[] = [];

  afterEach(async () => {
    for (const { child } of processes) if (child.exitCode === null) child.kill('SIGKILL');
    await Promise.all(processes.splice(0).map(({ ended }) => ended));
    await server().send('FLUSHALL');
  });

  const send = (...command: string[]): Promise<unknown> => server().send(...command);

  /** The words of another program, or of redis-locks called otherwise. */
  const launch = (words: readonly string[], env: NodeJS.ProcessEnv = {}, stdout?: number): Program => {
    const { host, port } = server().address;
    const started = new Program(words, { REDIS_URL: `redis://${host}:${port}`, ...env }, stdout);
    processes.push(started);
    return started;
  };

  const start = (...args: string[]): Program => launch([...COMMAND, ...args]);

  /** As `start`, in a pseudo-terminal. `redirect`: what a shell adds to the words. */
  const inTerminal = (args: readonly string[], redirect = ''): Program => {
    const words = [...COMMAND, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
    // With `exec`, no shell is left that Ctrl-C would end too: dash then exits with 130.
    return launch(['script', '-qec', `stty rows 24 cols 80; exec ${words} ${redirect}`, '/dev/null']);
  };

  /** Starts a `run` whose command sets its traps and says that it has begun, and waits for that. */
  const hold = async (options: string[], script: string, traps = ':'): Promise<Program> => {
    const holder = start('run', 'nightly', ...options, '--', 'sh', '-c', `${traps}; echo begun; ${script}`);
    await until(() => holder.stdout.includes('begun'), LIMIT);
    return holder;
  };

  const isHeld = async (): Promise<boolean> => (await send('EXISTS', 'locks:nightly')) === 1;

  return { send, launch, start, inTerminal, hold, isHeld };
}
