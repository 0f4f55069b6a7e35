import { parseArgs } from 'node:util';
import { LOCK_TYPES, type LockType } from '../protocols/lock-type-traits';
import { EXIT, ExitError } from './exit-codes';

const OPTIONS = {
  url: { type: 'string' },
  'registry-key': { type: 'string' },
  type: { type: 'string' },
  name: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
  wait: { type: 'string' },
  'no-wait': { type: 'boolean' },
  ttl: { type: 'string' },
  'min-hold': { type: 'string' },
  grace: { type: 'string' },
  fencing: { type: 'boolean' },
  match: { type: 'string' },
  interval: { type: 'string' },
  force: { type: 'boolean' },
  yes: { type: 'boolean' },
} as const;

/** Options that every command takes. */
const EVERYWHERE = ['url', 'registry-key', 'type', 'name', 'json', 'help', 'version'];

/** The options of each command beside those. */
const OF_COMMAND: Readonly<Record<string, readonly string[]>> = {
  run: ['wait', 'no-wait', 'ttl', 'min-hold', 'grace', 'fencing'],
  ls: ['match', 'fencing'],
  inspect: ['fencing'],
  watch: ['match', 'interval'],
  release: ['force', 'yes'],
};

export type Values = {
  -readonly [Name in keyof typeof OPTIONS]?: (typeof OPTIONS)[Name]['type'] extends 'string' ? string : boolean;
};

/** What the command line says. */
export interface Arguments {
  /** `undefined`: none was given. */
  readonly command: string | undefined;
  /** The words after the command. */
  readonly operands: readonly string[];
  /** What follows `--`; `undefined`: there was none. */
  readonly rest: readonly string[] | undefined;
  readonly values: Values;
}

export function readArguments(argv: readonly string[]): Arguments {
  const end = argv.indexOf('--');
  const own = end < 0 ? argv : argv.slice(0, end);
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(own);
  } catch (error) {
    throw new ExitError(EXIT.usage, firstSentence((error as Error).message));
  }
  const [command, ...operands] = parsed.positionals;
  const values = parsed.values as Values;
  if (command !== undefined) assertKnown(command, values);
  return { command, operands, rest: end < 0 ? undefined : argv.slice(end + 1), values };
}

/** The lock type, `spin` by default. */
export function lockTypeOf({ type = 'spin' }: Values): LockType {
  const known = LOCK_TYPES.find((one) => one === type);
  if (known === undefined) throw new ExitError(EXIT.usage, `--type is one of ${LOCK_TYPES.join(', ')}, not "${type}"`);
  return known;
}

/** The one key that a command is about. */
export function keyOf({ command, operands }: Arguments): string {
  const [key] = operands;
  if (key === undefined || key === '' || operands.length > 1) {
    throw new ExitError(
      EXIT.usage,
      `redis-locks ${command} takes one KEY, not ${operands.length} (${operands.join(' ')})`,
    );
  }
  return key;
}

function parse(args: readonly string[]) {
  return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true, strict: true });
}

function assertKnown(command: string, values: Values): void {
  const own = Object.hasOwn(OF_COMMAND, command) ? OF_COMMAND[command] : undefined;
  if (own === undefined) {
    throw new ExitError(
      EXIT.usage,
      `There is no command "${command}"; there are ${Object.keys(OF_COMMAND).join(', ')}`,
    );
  }
  const foreign = Object.keys(values).find((name) => !EVERYWHERE.includes(name) && !own.includes(name));
  if (foreign !== undefined) throw new ExitError(EXIT.usage, `redis-locks ${command} has no option --${foreign}`);
}

function firstSentence(message: string): string {
  return message.split('. ')[0] ?? message;
}
