import { createHash } from 'node:crypto';
import type { RawNodeRedis } from './clients';

/** Minimal lock scripts: compare the owner, then act. */
const sources = {
  acquire: `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`,
  release: `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
  acquireAll: `
if redis.call('EXISTS', unpack(KEYS)) > 0 then return 0 end
for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
return 1`,
  releaseAll: `
for _, key in ipairs(KEYS) do if redis.call('GET', key) == ARGV[1] then redis.call('DEL', key) end end`,
  releaseAndPublish: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return redis.call('PUBLISH', KEYS[1], '')`,
  handOver: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])`,
  takeOrQueue: `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 0`,
  // The next owner is in the reply if it is of the same process, else it is published to its process.
  handOverToFirst: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return '' end
local next = redis.call('LPOP', KEYS[2])
if not next then
  redis.call('DEL', KEYS[1])
  return ''
end
redis.call('SET', KEYS[1], next, 'PX', ARGV[2])
local process = string.match(next, '^%d+')
if process == string.match(ARGV[1], '^%d+') then return next end
redis.call('PUBLISH', 'token:' .. process, next)
return ''`,
  // By the time of the call: its score is the time of the server, less the caller's age in microseconds.
  takeOrQueueByCall: `
if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
local time = redis.call('TIME')
redis.call('ZADD', KEYS[2], time[1] * 1000000 + time[2] - ARGV[3], ARGV[1])
return 0`,
  // To the earliest caller: the next one of the same process, or the first in the queue, where that one is next.
  handOverByCall: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return '' end
local ttl, next = ARGV[2], ARGV[4]
if redis.call('EXISTS', KEYS[2]) == 1 then
  if next ~= '' then
    local time = redis.call('TIME')
    redis.call('ZADD', KEYS[2], time[1] * 1000000 + time[2] - ARGV[5], next)
  end
  local first = redis.call('ZPOPMIN', KEYS[2])[1]
  if first ~= next then
    redis.call('SET', KEYS[1], first, 'PX', ARGV[3])
    redis.call('PUBLISH', 'fair:' .. string.match(first, '^%d+'), first)
    return ''
  end
end
if next == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], next, 'PX', ttl)
end
return next`,
  // A grant that ended unclaimed is claimed late: nobody else asks for the lock while there is a queue.
  renewGrant: `
local holder = redis.call('GET', KEYS[1])
if not holder or holder == ARGV[1] then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end`,
  renew: `
local held = 0
for i, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[i + 1] then held = held + redis.call('PEXPIRE', key, ARGV[1]) end
end
return held`,
};

type ScriptName = keyof typeof sources;

/** Scripts that are loaded once, so that each call is one EVALSHA. */
export class RawScripts {
  readonly #client: RawNodeRedis;
  readonly #sha1 = new Map<ScriptName, string>();

  static async load(client: RawNodeRedis, ...names: ScriptName[]): Promise<RawScripts> {
    const scripts = new RawScripts(client);
    for (const name of names) {
      scripts.#sha1.set(name, createHash('sha1').update(sources[name]).digest('hex'));
      await client.scriptLoad(sources[name]);
    }
    return scripts;
  }

  private constructor(client: RawNodeRedis) {
    this.#client = client;
  }

  run(name: ScriptName, keys: string[], ...args: string[]): Promise<unknown> {
    return this.#client.evalSha(this.#sha1.get(name) as string, { keys, arguments: args });
  }
}

let sequence = 0;

/** A new owner value. */
export function nextOwner(): string {
  return `${process.pid}:${++sequence}`;
}
