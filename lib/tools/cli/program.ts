import { type Arguments, helpOf, readArguments } from './arguments';
import { completionOf, nextWords } from './completion';
import { complain, EXIT, ExitError, usageError } from './output';
import { run } from './run';
import { askFor, inspect, list, release, ui, watch } from './show';
import type { Signals } from './signals';

const COMMANDS: Readonly<Record<string, (args: Arguments) => Promise<number>>> = {
  ls: list,
  inspect,
  watch,
  release,
  ask: askFor,
  ui,
  completion: async (args) => write(completionOf(args)),
  help: async ({ operands: [command] }) => write(helpOf(command)),
};

function write(text: string): number {
  process.stdout.write(text);
  return EXIT.ok;
}

async function exitCodeOf(argv: readonly string[], signals: Signals, version: () => string): Promise<number> {
  const { COMP_LINE: typed } = process.env;
  // Bash adds words of its own.
  if (argv[0] === 'completion' && typed !== undefined) {
    const words = await nextWords(typed, argv.slice(1));
    // The connection to Redis would keep the process, and the shell waiting.
    process.stdout.write(`${words}\n`, () => process.exit());
    return EXIT.ok;
  }
  const args = readArguments(argv);
  const { command: name = '', values } = args;
  if (name === 'run' && !values.version && !values.help) return run(args, signals);
  signals.giveUp();
  if (values.version) return write(`${version()}\n`);
  if (values.help) return write(helpOf(args.command));
  const command = COMMANDS[name];
  if (command === undefined) throw usageError('A command is missing; redis-locks --help lists them');
  return command(args);
}

/** What redis-locks does, from its words to its exit code. */
export async function program(argv: readonly string[], signals: Signals, version: () => string): Promise<void> {
  let hasFailed = false;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that has gone away, as with `| head`, wants no more.
    if (error.code === 'EPIPE' || hasFailed) return;
    hasFailed = true;
    complain(`The output cannot be written: ${error.message}`);
    process.exitCode = EXIT.notWritten;
  });
  // A message that nobody reads must not end `run` while it holds the lock.
  process.stderr.on('error', () => undefined);
  const exitCode = await exitCodeOf(argv, signals, version).catch((error: unknown) => {
    complain(error instanceof Error ? error.message : String(error));
    return error instanceof ExitError ? error.exitCode : EXIT.unavailable;
  });
  process.exitCode = exitCode || (hasFailed ? EXIT.notWritten : EXIT.ok);
  // While Node clears up by itself, a signal would change what has come out.
  if (signals.areHandled) process.stderr.write('', () => process.exit());
}
