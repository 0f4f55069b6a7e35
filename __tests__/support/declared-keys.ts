import { createHash } from 'node:crypto';
import { allScripts } from '../../support/all-scripts';
import { type ClientKind, onServer } from './client-kinds';
import { createRealClient, type TestClient, uniqueKey } from './redis';

/** How many of the first arguments of a command are keys. Scripts use these commands, and no other. */
const KEYS_OF = {
  none: 'PUBLISH PUBSUB SCAN SPUBLISH TIME',
  first: `GET GETRANGE HDEL HEXISTS HGET HGETALL HKEYS HLEN HMGET HSET INCR INCRBY LINDEX LLEN LPOP LRANGE LREM PEXPIRE
    PEXPIREAT PTTL RPUSH SET TYPE ZADD ZCARD ZINCRBY ZRANGE ZRANGEBYSCORE ZREM ZSCORE`,
  all: 'DEL EXISTS UNLINK',
};

/** Where scripts that break the rule leave what they did: some of them catch their errors. */
const VIOLATIONS = uniqueKey('violations');

const names = (words: string): string =>
  words
    .split(/\s+/)
    .map((word) => `['${word}']`)
    .join('');

/** Lua in one line, before a script: its commands then refuse keys that are not in KEYS. */
const PRELUDE = `
local redis = (function(server)
  local none, first, all = "${names(KEYS_OF.none)}", "${names(KEYS_OF.first)}", "${names(KEYS_OF.all)}"
  local declared = {}
  for _, key in ipairs(KEYS) do declared[key] = true end
  local function guarded(call, isProtected)
    return function(name, ...)
      local args = { ... }
      local function isOne(of) return string.find(of, "['" .. name .. "']", 1, true) end
      local keys = isOne(none) and 0 or isOne(first) and 1 or isOne(all) and #args or -1
      for i = math.min(keys, 1), keys do
        if i ~= 0 and not declared[args[i]] then keys = -1 end
      end
      if keys < 0 then
        server.call('RPUSH', '${VIOLATIONS}', name .. ' ' .. tostring(args[1]))
        local message = 'ERR not in KEYS: ' .. name .. ' ' .. tostring(args[1])
        if isProtected then return { err = message } end
        error(message)
      end
      return call(name, ...)
    end
  end
  return setmetatable({ call = guarded(server.call, false), pcall = guarded(server.pcall, true) }, { __index = server })
end)(redis) `.replace(/\s+/g, ' ');

const digest = (text: string): string => createHash('sha1').update(text).digest('hex');

/** The texts of scripts by their digests, as the library sends these. Those of applications are added as they come. */
const known = new Map(allScripts().map(({ sha1, source }) => [sha1, source]));

/** The digests of the scripts that were run. */
export const ran = new Set<string>();

function guarded(words: readonly string[]): readonly string[] {
  const [command = '', script = '', ...rest] = words;
  if (command !== 'EVAL' && command !== 'EVALSHA') return words;
  if (command === 'EVAL') known.set(digest(script), script);
  const source = command === 'EVAL' ? script : known.get(script);
  // A server that another test has used may know the script itself.
  if (source === undefined) return [command, '0'.repeat(40), ...rest];
  ran.add(digest(source));
  const [shebang = ''] = /^#![^\n]*(\n|$)/.exec(source) ?? [];
  const text = `${shebang}${PRELUDE}${source.slice(shebang.length)}`;
  return [command, command === 'EVAL' ? text : digest(text), ...rest];
}

/** A client whose scripts may use the keys that they declare, and no other. */
export async function createGuardedClient(): Promise<TestClient> {
  const client = await createRealClient();
  // What `createClient` and `withCommandOptions` return inherits from it.
  const { _self: original } = client as unknown as { readonly _self: TestClient };
  const send = original.sendCommand;
  original.sendCommand = function (this: TestClient, args: readonly string[], options?: object) {
    return send.call(this, guarded(args), options);
  } as typeof send;
  return client;
}

export const declaredKeysClient: ClientKind = {
  name: 'a client whose scripts may use their KEYS only',
  server: 'real',
  open: onServer(async () => {
    const client = await createGuardedClient();
    return { client, end: () => client.destroy() };
  }),
};

/** What scripts did with other keys, or other commands, since it was asked last. */
export async function takeViolations(): Promise<string[]> {
  const client = await createRealClient();
  return (await client.lPopCount(VIOLATIONS, 1_000)) ?? [];
}
