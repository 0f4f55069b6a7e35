import { parseArgs } from 'node:util';
import { LOCK_TYPES } from '../../api/lock-types';
import { MAX_DELAY } from '../../internal/clock';
import { nearestTo } from '../../internal/validation';
import { usageError } from './output';

/** Name: [what it takes, as an example; '': it takes nothing], what it says, a letter for it. */
const OPTIONS = {
  wait: ['30s', 'how long to wait for the lock; a number alone is seconds; default: for ever', 'w'],
  'no-wait': ['', 'do not wait', 'n'],
  'conflict-exit-code': ['N', 'the exit code when the lock was not free; default: 75', 'E'],
  quiet: ['', 'do not say that it waits', 'q'],
  shared: ['', 'read: take a read/write lock beside other readers', 's'],
  exclusive: ['', 'write: take a read/write lock alone', 'x'],
  permits: ['N', 'take one of the N permits of a semaphore'],
  ttl: ['30s', 'a fixed lease: the lock is not renewed, and ends after this time'],
  'min-hold': ['30s', 'for this long nobody else gets the lock, even if the command ends earlier: for cron'],
  grace: ['10s', 'when the lock is lost, the command gets SIGTERM, and after this time SIGKILL'],
  fencing: ['', 'fencing tokens, for the Redisson types too'],
  name: ['NAME', 'what others read as the holder; default: host and pid'],
  match: ["'order:*'", 'only the locks whose names end like this; with --registry-key, whose keys are like this'],
  sort: ['held', `held, waiting or left: the longest held, the most waiting or the least left first; else by name`],
  'longer-than': ['5m', 'only the locks that have been held for longer'],
  waiting: ['', 'only the locks that somebody waits for, as far as it is known'],
  interval: ['1s', 'how often to look'],
  why: ['TEXT', 'what the holder reads, up to 200 characters'],
  yes: ['', 'do not ask', 'y'],
  'may-be-data': [
    '',
    'also a key that may be data, which is deleted then; with --registry-key, or for a UUID its whole name as KEY',
  ],
  host: ['ADDRESS', 'where to listen; default: 127.0.0.1, which only this machine reaches. Others need --token too'],
  port: ['N', 'default: any that is free'],
  token: ['TEXT', 'who has it sees the page; default: a random one, in the URL that is printed'],
  actions: ['', 'the page may ask holders, and release locks by force'],
  url: ['URL', 'redis[s]://[user:password@]host:port/database; default: REDIS_URL, else localhost'],
  cluster: ['', 'the URL is of a node of a cluster; detected where the server says so'],
  sentinel: ['NAME', 'the URL is of a sentinel, which has this name for the master'],
  'registry-key': ['KEY', 'the registryKey of the application; default: REDIS_LOCKS_REGISTRY_KEY; run: else locks'],
  type: ['TYPE', `${LOCK_TYPES.join(', ')}: as the application; run: else spin`],
  json: ['', 'JSON in place of text'],
  help: ['', 'this text', 'h'],
  version: ['', 'the version'],
} as const;

type Name = keyof typeof OPTIONS;
export type Values = { -readonly [N in Name]?: (typeof OPTIONS)[N][0] extends '' ? boolean : string };

/** Options that every command takes which asks Redis. */
const ON_REDIS = ['url', 'cluster', 'sentinel', 'registry-key'] as const;

/** Options that every command takes. */
const EVERYWHERE = ['help', 'version'] as const;

/** Which locks are shown, and in which order. */
const CHOICE = ['type', 'match', 'sort', 'longer-than', 'waiting'] as const;

/** The commands: what follows their names, what they do, and their options beside those. */
export const COMMANDS: Readonly<Record<string, readonly [use: string, about: string, ...options: Name[]]>> = {
  run: [
    'KEY [options] -- COMMAND [ARGUMENTS]',
    'waits for the lock KEY, runs the command while it holds it, and gives it back',
    ...(['wait', 'no-wait', 'conflict-exit-code', 'quiet', 'shared', 'exclusive', 'permits'] as const),
    ...(['ttl', 'min-hold', 'grace', 'fencing', 'name', 'type', ...ON_REDIS] as const),
  ],
  ls: ['', 'the locks that are held, of every registry unless --registry-key is given', ...CHOICE, ...ON_REDIS, 'json'],
  inspect: [
    'KEY',
    'who holds a lock. KEY: its name in Redis, or the end of it after a colon; with --registry-key, its key',
    ...(['type', ...ON_REDIS, 'json'] as const),
  ],
  watch: ['', 'a live table, and what changes; ends with Ctrl-C', ...CHOICE, 'interval', ...ON_REDIS, 'json'],
  release: [
    'KEY',
    'frees a lock by force, though its holder may be at work; asks first',
    'yes',
    'may-be-data',
    'type',
    ...ON_REDIS,
    'json',
  ],
  ask: [
    'KEY',
    'asks the holder of a lock to end early, and takes nothing; exit code 75: its process does not hear it',
    'why',
    'name',
    'type',
    ...ON_REDIS,
    'json',
  ],
  ui: ['', 'serves a page that shows the locks, live', 'host', 'port', 'token', 'actions', ...ON_REDIS, 'json'],
  completion: ['bash|zsh|fish', 'completes commands, options and KEYs, when the shell reads it at its start'],
  help: ['[COMMAND]', 'this text'],
};

/** What `--sort` takes. */
export const ORDERS = ['held', 'waiting', 'left'] as const;

export const orderOf = (values: Values) => oneOf(values, 'sort', ORDERS);
export const lockTypeOf = (values: Values) => oneOf(values, 'type', LOCK_TYPES);

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
  const { positionals, values } = parse(end < 0 ? argv : argv.slice(0, end), true);
  const [command, ...operands] = positionals;
  if (command !== undefined) assertKnown(command, values);
  const rest = end < 0 ? undefined : argv.slice(end + 1);
  if (rest === undefined || (command === 'run' && operands.length > 0)) return { command, operands, rest, values };
  // A KEY that begins with "-" stands behind a `--`. That of `run` has another one behind it.
  const next = command === 'run' ? rest.indexOf('--') : -1;
  if (next < 0) return { command, operands: [...operands, ...rest], rest: undefined, values };
  return { command, operands: rest.slice(0, next), rest: rest.slice(next + 1), values };
}

/** `isStrict`: throws for words that cannot be meant; else an option without its value is `true`. */
export function parse(args: readonly string[], isStrict: boolean): { positionals: string[]; values: Values } {
  const options = Object.entries(OPTIONS).map(([name, [value, , short]]) => {
    const type: 'boolean' | 'string' = value === '' ? 'boolean' : 'string';
    return [name, short === undefined ? { type } : { type, short }] as const;
  });
  const config = { args: [...args], options: Object.fromEntries(options), allowPositionals: true, strict: isStrict };
  try {
    return parseArgs(config) as { positionals: string[]; values: Values };
  } catch (error) {
    const sentence = (error as Error).message.replace(/\. To specify a positional .*$/s, '').replaceAll('\n', ' ');
    const [, unknown] = /^Unknown option '--(.*)'$/.exec(sentence) ?? [];
    const isKey = unknown === undefined && sentence.startsWith('Unknown option');
    if (unknown === undefined)
      throw usageError(isKey ? `${sentence}; a KEY that begins with - stands behind --` : sentence);
    const command = args.find((word) => Object.hasOwn(COMMANDS, word));
    const known = command === undefined ? Object.keys(OPTIONS) : optionsOf(command);
    throw usageError(`${sentence}${meant(unknown, known, '--')}`);
  }
}

function assertKnown(command: string, values: Values): void {
  const all = Object.keys(COMMANDS);
  if (!all.includes(command)) {
    throw usageError(`There is no command "${command}"${meant(command, all) || `; there are ${all.join(', ')}`}`);
  }
  const known: readonly string[] = optionsOf(command);
  const foreign = Object.keys(values).find((name) => !known.includes(name));
  if (foreign === undefined) return;
  const alike = known.find((name) => name.startsWith(foreign) || foreign.startsWith(name));
  const others = all.filter((other) => optionsOf(other).includes(foreign as Name)).join(' and ');
  const hint = alike === undefined ? `; it is one of ${others}` : `; did you mean --${alike}?`;
  throw usageError(`redis-locks ${command} has no option --${foreign}${hint}`);
}

export function optionsOf(command: string): Name[] {
  const [, , ...own] = (Object.hasOwn(COMMANDS, command) && COMMANDS[command]) || ['', '', ...ON_REDIS];
  return [...own, ...EVERYWHERE];
}

/** Whether the next word is the value of this option. */
export function takesValue(word: string): boolean {
  const named = Object.entries(OPTIONS).find(([name, [, , short]]) => word === `--${name}` || word === `-${short}`);
  return named !== undefined && named[1][0] !== '';
}

/** `; did you mean …?`, or nothing. */
function meant(word: string, known: readonly string[], prefix = ''): string {
  const near = nearestTo(word, known);
  return near === undefined ? '' : `; did you mean ${prefix}${near}?`;
}

/** `undefined`: the option was not given. */
function oneOf<T extends string>(values: Values, option: 'sort' | 'type', words: readonly T[]): T | undefined {
  const given = values[option];
  const known = words.find((one) => one === given);
  if (known !== undefined || given === undefined) return known;
  throw usageError(`--${option} is one of ${words.join(', ')}, not "${given}"${meant(given, words)}`);
}

/** `undefined`: none was given. */
export function registryKeyOf(values: Values): string | undefined {
  return values['registry-key'] ?? (process.env.REDIS_LOCKS_REGISTRY_KEY || undefined);
}

/** The one key that a command is about. */
export function keyOf({ command, operands }: Arguments): string {
  const [key] = operands;
  if (key === undefined || key === '' || operands.length > 1) {
    const given = operands.map((one) => JSON.stringify(one)).join(' ') || 'none';
    throw usageError(`redis-locks ${command} takes one KEY, not ${given}`);
  }
  return key;
}

export function assertNoKey({ command, operands, values }: Arguments): void {
  if (operands.length > 0) throw usageError(`redis-locks ${command} takes no KEY; --match takes a pattern`);
  if (registryKeyOf(values) === '') {
    throw usageError(`${command} takes no empty --registry-key: without one, it shows all locks`);
  }
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, '': 1_000 };

/** ms of `500ms`, `30s`, `5m`, `1.5h`, and of `30`, which is seconds. `none`: the option was not given. */
export function durationOf<T>(values: Values, option: Name, none: T): number | T {
  const text = values[option];
  if (text === undefined) return none;
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|)$/.exec(String(text)) ?? [];
  const ms = Number(number) * (UNITS[unit] ?? Number.NaN);
  if (number !== '' && Number.isFinite(ms)) return ms;
  throw usageError(`--${option} takes a duration such as 500ms, 30s or 5m, not "${text}"`);
}

/** Reads what `durationOf` reads, for a timer: that would take a longer time for none at all. */
export function delayOf(values: Values, option: Name, none: number): number {
  return Math.min(durationOf(values, option, none), MAX_DELAY);
}

export function numberOf<T>(values: Values, option: Name, none: T, least: number, most: number): number | T {
  const text = values[option];
  if (text === undefined) return none;
  const number = Number(text);
  if (/^\d+$/.test(String(text)) && number >= least && number <= most) return number;
  throw usageError(`--${option} takes a whole number from ${least} to ${most}, not "${text}"`);
}

/** Of the commands that look for locks; docs/operations.md has all of them. */
const EXIT_CODES = `
  Exit codes: 0 success; 64 wrong call; 65 what has the name of the lock is none, and in the way; 66 nobody holds it;
  67 it is not known of some locks whether they belong to the answer; 69 Redis is away, or refuses; 76 incomplete answer
`;

/** The text of `help`, for one command or for all. */
export function helpOf(command: string | undefined): string {
  if (command !== undefined) assertKnown(command, {});
  const commands = command === undefined ? Object.keys(COMMANDS) : [command];
  const uses = commands.map((name) => `  redis-locks ${name} ${COMMANDS[name]?.[0]}\n      ${COMMANDS[name]?.[1]}`);
  const options = optionsOf(command ?? '');
  const lines = options.map((name) => {
    const [value, about, short] = OPTIONS[name] as readonly string[];
    const written = `${short === undefined ? '' : `-${short}, `}--${name} ${value}`;
    return `      ${written.padEnd(28)}${about}`;
  });
  const title = 'redis-locks: runs a command under a lock in Redis, and shows who holds which lock\n\n';
  const more = '\n\n  redis-locks help run, and so on: the options of a command';
  const example = '\n  Example: redis-locks run nightly --wait 5m -- ./backup.sh\n';
  const isAll = command === undefined;
  const exitCodes = isAll || ['ls', 'inspect', 'release', 'ask'].includes(command) ? EXIT_CODES : '';
  return `${isAll ? title : ''}${uses.join('\n')}\n\n${lines.join('\n')}${isAll ? more : ''}${isAll || command === 'run' ? example : '\n'}${exitCodes}`;
}
