#!/usr/bin/env node
import { type Arguments, completionOf, helpOf, nextWords, readArguments } from './arguments';
import { complain, EXIT, ExitError, usageError } from './output';
import { run } from './run';
import { inspect, list, release, ui, watch } from './show';

const COMMANDS: Readonly<Record<string, (args: Arguments) => Promise<number>>> = {
  run,
  ls: list,
  inspect,
  watch,
  release,
  ui,
  completion: async (args) => write(completionOf(args)),
  help: async ({ operands: [command] }) => write(helpOf(command)),
};

function write(text: string): number {
  process.stdout.write(text);
  return EXIT.ok;
}

async function main(argv: readonly string[]): Promise<number> {
  const { COMP_LINE: typed } = process.env;
  // Bash adds words of its own.
  if (argv[0] === 'completion' && typed !== undefined) return write(`${nextWords(typed)}\n`);
  const args = readArguments(argv);
  if (args.values.version) return write(`${(require('../../package.json') as { version: string }).version}\n`);
  if (args.values.help) return write(helpOf(args.command));
  const command = COMMANDS[args.command ?? ''];
  if (command === undefined) throw usageError('A command is missing; redis-locks --help lists them');
  return command(args);
}

/** `undefined`: everything could be written. */
let writeError: NodeJS.ErrnoException | undefined;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader that has gone away, as with `| head`, wants no more.
  if (error.code === 'EPIPE' || writeError !== undefined) return;
  writeError = error;
  complain(`The output cannot be written: ${error.message}`);
  process.exitCode = EXIT.notWritten;
});
// A message that nobody reads must not end `run` while it holds the lock.
process.stderr.on('error', () => undefined);

main(process.argv.slice(2)).then(
  (exitCode) => {
    process.exitCode = exitCode || (writeError === undefined ? EXIT.ok : EXIT.notWritten);
  },
  (error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    complain(message);
    process.exitCode = error instanceof ExitError ? error.exitCode : EXIT.unavailable;
  },
);
