import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { installEmbeddedRedis } from '../../embedded-redis/start';
import type { Reply } from './reply';

/** Executes one command for a script. */
type Execute = (command: readonly string[]) => Reply;

/** Runs scripts as Redis 7 does. */
export interface ScriptEngine {
  run(source: string, keys: readonly string[], args: readonly string[], execute: Execute): Reply;
}

/** Of a script: its digest, or what is run of it. Both are asked for again and again. */
function remembered(make: (source: string) => string): (source: string) => string {
  const made = new Map<string, string>();
  return (source) => {
    const before = made.get(source);
    if (before !== undefined) return before;
    const value = make(source);
    made.set(source, value);
    return value;
  };
}

export const sha1 = remembered((source) => createHash('sha1').update(source).digest('hex'));

/** The engine reads the whole text at each run. The lines keep their numbers. */
const withoutComments = remembered((source) => source.replaceAll(/^\s*--.*$/gm, ''));

/** What scripts and commands reply, of what lua-redis-wasm can express. */
type ReplyValue =
  | null
  | number
  | Buffer
  | { readonly ok: Buffer }
  | { readonly err: Buffer; readonly code?: Buffer }
  | ReplyValue[];

interface LuaWasm {
  readonly LuaWasmEngine: {
    create(options: {
      readonly host: {
        redisCall(args: Buffer[]): ReplyValue;
        redisPcall(args: Buffer[]): ReplyValue;
        log(): void;
      };
    }): Promise<{ evalWithArgs(source: string, keys: string[], args: string[]): ReplyValue }>;
  };
}

/** js-redis-server brings it along: a dependency of the project's own would ask for a newer Node.js than the project. */
function loadLuaWasm(): LuaWasm {
  installEmbeddedRedis();
  return createRequire(join(resolve(__dirname, '../../embedded-redis'), 'start.ts'))('lua-redis-wasm');
}

/** The Lua 5.1 of Redis itself, compiled to WebAssembly. */
export async function createScriptEngine(): Promise<ScriptEngine> {
  const { LuaWasmEngine } = loadLuaWasm();
  let current: Execute = () => null;
  const call = (args: Buffer[]): ReplyValue => fromReply(current(args.map(String)));
  const engine = await LuaWasmEngine.create({ host: { redisCall: call, redisPcall: call, log: () => undefined } });
  return {
    run: (source, keys, args, execute) => {
      current = execute;
      return toReply(engine.evalWithArgs(withoutComments(source), [...keys], [...args]));
    },
  };
}

function fromReply(reply: Reply): ReplyValue {
  if (reply === null || typeof reply === 'number') return reply;
  if (typeof reply === 'string') return Buffer.from(reply);
  if (Array.isArray(reply)) return reply.map(fromReply);
  return 'ok' in reply ? { ok: Buffer.from(reply.ok) } : { err: Buffer.from((reply as { err: string }).err) };
}

function toReply(value: ReplyValue): Reply {
  if (value === null || typeof value === 'number') return value;
  if (Buffer.isBuffer(value)) return value.toString();
  if (Array.isArray(value)) return value.map(toReply);
  if (typeof value === 'object' && 'ok' in value) return { ok: value.ok.toString() };
  if (typeof value === 'object' && 'err' in value) {
    const code = value.code === undefined ? '' : `${value.code.toString()} `;
    return { err: `${code}${value.err.toString()}` };
  }
  throw new TypeError(`Unexpected reply of a script: ${String(value)}`);
}
