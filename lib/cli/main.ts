#!/usr/bin/env node
import { type Arguments, readArguments } from './arguments';
import { EXIT, ExitError } from './exit-codes';
import { HELP } from './help';
import { inspect, list, release } from './inspect-commands';
import { complain } from './output';
import { run } from './run-command';
import { watch } from './watch-command';

const COMMANDS: Readonly<Record<string, (args: Arguments) => Promise<number>>> = {
  run,
  ls: list,
  inspect,
  watch,
  release,
};

async function main(argv: readonly string[]): Promise<number> {
  const args = readArguments(argv);
  if (args.values.version) {
    const { version } = require('../../package.json') as { version: string };
    process.stdout.write(`${version}\n`);
    return EXIT.ok;
  }
  if (args.values.help) {
    process.stdout.write(HELP);
    return EXIT.ok;
  }
  const command = COMMANDS[args.command ?? ''];
  if (command === undefined) throw new ExitError(EXIT.usage, 'A command is missing; redis-locks --help lists them');
  return command(args);
}

main(process.argv.slice(2)).then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
  (error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    complain(message);
    process.exitCode = error instanceof ExitError ? error.exitCode : EXIT.unavailable;
  },
);
