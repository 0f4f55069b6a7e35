import { collectionCommands } from './collection-commands';
import type { Keyspace } from './keyspace';
import { CommandError, OK, type Reply, syntaxError } from './reply';
import { sortedSetCommands } from './sorted-set-commands';

/** What a command works on. */
export interface CommandContext {
  readonly keys: Keyspace;
  /** The server's clock in whole ms. */
  now(): number;
  /** ms by which it has gone on within the command. */
  ticks(): number;
  /** The server's clock in whole microseconds. */
  microseconds(): number;
  /** Returns how many listen. */
  publish(channel: string, message: string): number;
  listeners(channel: string): number;
}

export type Command = (context: CommandContext, args: readonly string[]) => Reply;

/** A command, and how many arguments it has at the least. */
export type CommandTable = Readonly<Record<string, readonly [least: number, Command]>>;

export function integer(text: string | undefined): number {
  if (text !== undefined && /^-?\d+$/.test(text)) return Number(text);
  throw new CommandError({ err: 'ERR value is not an integer or out of range' });
}

function set({ keys, now }: CommandContext, [key = '', value = '', ...options]: readonly string[]): Reply {
  let end = Number.POSITIVE_INFINITY;
  let condition: string | undefined;
  for (let i = 0; i < options.length; i++) {
    const option = options[i];
    if (option === 'PX') end = now() + positive(options[++i], 'set');
    else if (option === 'NX' || option === 'XX') condition = option;
    else throw syntaxError();
  }
  if (condition !== undefined && keys.has(key) !== (condition === 'XX')) return null;
  keys.setString(key, value, end);
  return OK;
}

function positive(text: string | undefined, command: string): number {
  const ms = integer(text);
  if (ms <= 0) throw new CommandError({ err: `ERR invalid expire time in '${command}' command` });
  return ms;
}

function expire({ keys, now }: CommandContext, key: string, end: number, ticks = 0): Reply {
  if (!keys.has(key)) return 0;
  if (end <= now() + ticks) keys.delete(key);
  else keys.expireAt(key, end);
  return 1;
}

function life({ keys, now }: CommandContext, key: string): number {
  const end = keys.expiresAt(key);
  if (end === undefined) return -2;
  return end === Number.POSITIVE_INFINITY ? -1 : end - now();
}

const removeAll: Command = ({ keys }, names) => names.filter((key) => keys.delete(key)).length;

function countListeners(context: CommandContext, [kind, ...channels]: readonly string[]): Reply {
  if (kind !== 'NUMSUB') throw syntaxError();
  return channels.flatMap((channel): Reply[] => [channel, context.listeners(channel)]);
}

function increment({ keys }: CommandContext, key: string, by: number): number {
  const next = integer(keys.get(key, 'string') ?? '0') + by;
  keys.setString(key, String(next), undefined);
  return next;
}

const stringCommands: CommandTable = {
  GET: [1, ({ keys }, [key = '']) => keys.get(key, 'string') ?? null],
  SET: [2, set],
  DEL: [1, removeAll],
  UNLINK: [1, removeAll],
  EXISTS: [1, ({ keys }, names) => names.filter((key) => keys.has(key)).length],
  TYPE: [1, ({ keys }, [key = '']) => ({ ok: keys.kind(key) ?? 'none' })],
  INCR: [1, (context, [key = '']) => increment(context, key, 1)],
  INCRBY: [2, (context, [key = '', by]) => increment(context, key, integer(by))],
  PTTL: [1, (context, [key = '']) => life(context, key)],
  PEXPIRE: [2, (context, [key = '', ms]) => expire(context, key, context.now() + integer(ms), context.ticks())],
  PEXPIREAT: [2, (context, [key = '', end]) => expire(context, key, integer(end))],
  TIME: [
    0,
    (context) => {
      const time = context.microseconds();
      return [String(Math.floor(time / 1e6)), String(time % 1e6)];
    },
  ],
  PUBLISH: [2, (context, [channel = '', message = '']) => context.publish(channel, message)],
  PUBSUB: [1, countListeners],
};

const COMMANDS = new Map(Object.entries({ ...stringCommands, ...collectionCommands, ...sortedSetCommands }));

/** Executes one command as Redis 7 does: an error is a reply. */
export function execute(context: CommandContext, [name = '', ...args]: readonly string[], isInScript = false): Reply {
  const [least, run] = COMMANDS.get(name.toUpperCase()) ?? [];
  if (least === undefined || run === undefined) {
    if (isInScript) return { err: 'ERR Unknown Redis command called from script' };
    const shown = args.map((arg) => `'${arg}' `).join('');
    return { err: `ERR unknown command '${name}', with args beginning with: ${shown}` };
  }
  if (args.length < least) {
    if (isInScript) return { err: 'ERR Wrong number of args calling Redis command from script' };
    return { err: `ERR wrong number of arguments for '${name.toLowerCase()}' command` };
  }
  try {
    return run(context, args);
  } catch (error) {
    if (error instanceof CommandError) return error.reply;
    throw error;
  }
}
