import { createHash } from 'node:crypto';
import { type Chunk, compile } from '../lua/compiler';
import { library, tableOf } from '../lua/library';
import { general } from '../lua/numbers';
import { Operators } from '../lua/operators';
import { LuaError, type LuaFunction, LuaTable, type LuaValue } from '../lua/value';
import { isError, type Reply } from './reply';

/** Executes one command for a script. */
export type Execute = (command: readonly string[]) => Reply;

/** Runs scripts as Redis 7 does. */
export interface ScriptEngine {
  run(source: string, keys: readonly string[], args: readonly string[], execute: Execute): Reply;
}

const shas = new Map<string, string>();

export function sha1(source: string): string {
  let sha = shas.get(source);
  if (sha === undefined) {
    sha = createHash('sha1').update(source).digest('hex');
    shas.set(source, sha);
  }
  return sha;
}

const chunks = new Map<string, Chunk>();

/** Runs scripts that were compiled to JavaScript, each once for the whole process. */
export class CompiledScripts implements ScriptEngine {
  readonly #operators = new Operators();
  readonly #globals = library();
  #execute: Execute = () => null;

  constructor() {
    this.#operators.strings = this.#globals.get('string') as LuaTable;
    const call: LuaFunction = (...args) => {
      const reply = this.#execute(args.map(commandArgument));
      if (isError(reply)) throw new LuaError(fromReply(reply));
      return [fromReply(reply)];
    };
    const pcall: LuaFunction = (...args) => [fromReply(this.#execute(args.map(commandArgument)))];
    this.#globals.set(
      'redis',
      tableOf({
        call,
        pcall,
        sha1hex: (value) => [sha1(String(value))],
        error_reply: (message) => [tableOf({ err: message })],
        status_reply: (message) => [tableOf({ ok: message })],
        log: () => [],
        LOG_WARNING: 3,
      }),
    );
  }

  run(source: string, keys: readonly string[], args: readonly string[], execute: Execute): Reply {
    this.#execute = execute;
    const own: Record<string, LuaValue> = { KEYS: new LuaTable([...keys]), ARGV: new LuaTable([...args]) };
    try {
      return toReply(this.#chunk(source)(this.#operators, (name) => this.#global(name, own))[0]);
    } catch (error) {
      if (error instanceof LuaError) return this.#failed(error, source);
      throw error;
    }
  }

  #chunk(source: string): Chunk {
    let chunk = chunks.get(source);
    if (chunk === undefined) {
      chunk = compile(source);
      chunks.set(source, chunk);
    }
    return chunk;
  }

  #global(name: string, own: Record<string, LuaValue>): LuaValue {
    const value = own[name] ?? this.#globals.get(name);
    if (value === undefined) throw new LuaError(`Script attempted to access nonexistent global variable '${name}'`);
    return value;
  }

  #failed({ value }: LuaError, source: string): Reply {
    const at = `script: ${sha1(source)}, on @user_script:${this.#operators.line}.`;
    if (value instanceof LuaTable) return { err: `${String(value.get('err'))} ${at}` };
    return { err: `ERR user_script:${this.#operators.line}: ${String(value)} ${at}` };
  }
}

function commandArgument(value: LuaValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : general(value, 17);
  throw new LuaError('Lua redis lib command arguments must be strings or integers');
}

function fromReply(reply: Reply): LuaValue {
  if (reply === null) return false;
  if (typeof reply !== 'object') return reply;
  if (Array.isArray(reply)) return new LuaTable(reply.map(fromReply));
  return tableOf(reply as { ok: string } | { err: string });
}

function toReply(value: LuaValue): Reply {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Math.trunc(value);
  if (value === true) return 1;
  if (!(value instanceof LuaTable)) return null;
  const error = value.get('err');
  if (typeof error === 'string') return { err: error };
  const status = value.get('ok');
  if (typeof status === 'string') return { ok: status };
  const end = value.array.indexOf(undefined);
  return (end < 0 ? value.array : value.array.slice(0, end)).map(toReply);
}
