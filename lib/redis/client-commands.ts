import type { EvalOptions, RedisClient, RedisCommands } from './client';

/** Options for each command: without node-redis' own timeout, and replies in their own types. */
interface OwnOptions {
  readonly timeout: number;
  readonly typeMapping?: Record<never, never>;
}

interface CommandOptions {
  readonly typeMapping?: unknown;
}

/**
 * Where node-redis' plain client has its options: those of the application, and those of `withTypeMapping` and its
 * like.
 */
interface NodeRedisClient {
  readonly options?: { readonly commandOptions?: CommandOptions };
  readonly _commandOptions?: CommandOptions;
}

/** What node-redis' plain client has beside a method for each command. */
interface PlainClient extends RedisCommands {
  sendCommand(args: string[], options: OwnOptions): Promise<unknown>;
}

/** The commands of a client, with options of our own. */
export function commandsOf(client: RedisClient): RedisCommands {
  const options = optionsFor(client);
  const commands = client.withCommandOptions?.(options) ?? client;
  return isPlain(client) && canSend(commands) ? sending(commands, options) : commands;
}

/** node-redis' plain client: one connection to one server, as far as it knows. */
function isPlain(client: RedisClient): boolean {
  return client.socketEpoch !== undefined && '_commandOptions' in client;
}

/**
 * Replies must come in their own types, though the application made its client answer with Buffers. node-redis copies
 * the options for every command, so a plain client that has no type mapping is not asked to have none.
 */
function optionsFor(client: RedisClient): OwnOptions {
  const { _commandOptions: own, options } = client as NodeRedisClient;
  const hasMapping = own?.typeMapping !== undefined || options?.commandOptions?.typeMapping !== undefined;
  return isPlain(client) && !hasMapping ? { timeout: 0 } : { timeout: 0, typeMapping: {} };
}

function canSend(commands: RedisCommands): commands is PlainClient {
  return typeof (commands as Partial<PlainClient>).sendCommand === 'function';
}

/**
 * Sends the two commands by `sendCommand`: the methods of node-redis for single commands make a parser and two more
 * promises each.
 */
function sending(client: PlainClient, options: OwnOptions): RedisCommands {
  const send = (command: string, script: string, { keys = [], arguments: args = [] }: EvalOptions = {}) =>
    client.sendCommand([command, script, String(keys.length), ...keys, ...args], options);
  return {
    eval: (source, run) => send('EVAL', source, run),
    evalSha: (sha1, run) => send('EVALSHA', sha1, run),
  };
}
