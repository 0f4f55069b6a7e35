/** Prints what the simulation's server answers otherwise than the Redis at the address that is its argument: client options as JSON. */

import { createClient } from 'redis';
import { RedisServer, type ServerConnection } from './server/redis-server';
import { isError, type Reply } from './server/reply';
import { createScriptEngine } from './server/script-engine';
import { Timeline } from './timeline';

const KEY = `fidelity:${process.pid}`;

const connection: ServerConnection = { channels: new Set(), isCounted: true, message: () => undefined };

/** `K` is `KEY`. */
const COMMANDS = `
SET K 1 PX 60000|GET K|SET K 2 NX|SET K 2 XX|INCR K|INCRBY K 3|INCRBY K x|GET K|PTTL nothing|EXISTS K K nothing
PTTL K|PEXPIRE K 50000|PEXPIRE nothing 5|PEXPIREAT nothing 5|PEXPIREAT K 5|EXISTS K|SET K 5|PTTL K|SET K v PX 0
SET K v FOO|SET K text|INCR K|HGET K f|ZADD K 1 a|RPUSH K a|DEL K nothing|UNLINK K
HSET K f 1 g 2|HSET K f 2 h 3|HSET K f|HGET K f|HGET K none|HEXISTS K f|HEXISTS K none|HMGET K f none g|HLEN K
HSET K i 9|HKEYS K|HDEL K f none|HGETALL K|GET K|ZSCORE K a|LINDEX K 0|HDEL K g h i|EXISTS K
ZADD K 1 a 2 b|ZADD K 3 c|ZADD K XX 8 a 9 d|ZADD nothing XX 0 a|ZADD K NX 9 a 4 n|ZRANGE K 0 -1 WITHSCORES|ZREM K n|ZADD K one a|ZADD K 1
ZSCORE K a|ZSCORE K none|ZRANGE K 0 -1|ZRANGE K 0 -1 WITHSCORES|ZRANGE K -1 -1 WITHSCORES|ZRANGE K 5 9
ZRANGEBYSCORE K 2 3|ZRANGEBYSCORE K (2 +inf WITHSCORES|ZINCRBY K -3 a|ZINCRBY K 1.5 b
ZADD K 1700000000000001 big|ZSCORE K big|ZINCRBY K 1700000000000 e|ZCARD K|ZREM K a none|HGET K f|ZREM K b c e big
EXISTS K|RPUSH K a b c b a|RPUSH K z|LLEN K|LINDEX K 0|LINDEX K -1|LINDEX K 99|LREM K 0 a|LREM K 0 none
LRANGE K 0 -1|LRANGE K 1 -2|LPOP K|LREM K 0 b|LRANGE K 0 -1|ZCARD K|LPOP K|LPOP K|LPOP K|LPOP K|EXISTS K
PUBLISH nowhere x|PUBSUB NUMSUB nowhere|NOSUCH a b|GET|TYPE K`
  .trim()
  .split(/[|\n]/)
  .map((command) => command.split(' '));

const SCRIPTS = [
  'return 3.99',
  'return { 1, 2.7, "x", true, false, 4 }',
  'return { 1, nil, 3 }',
  "return redis.call('GET', 'nothing')",
  "return redis.call('SET', KEYS[1], 12345678901234567)",
  "return redis.call('GET', KEYS[1])",
  "return { type(redis.call('GET', 'nothing')), type(redis.pcall('HGET', KEYS[1], 'f')), redis.sha1hex('') }",
  "return redis.pcall('HGET', KEYS[1], 'f')",
  "return { err = 'MY error' }",
  "return redis.call('HGET', KEYS[1], 'f')",
  'return tostring(1700000000000001) .. string.format("%.0f", 1700000000000001) .. 1e15 .. 0.1 .. 10 / 4',
  'return nil .. "x"',
  'local t = { 3, 1, 2 } table.sort(t) return t',
  'local t = { 3, 1, 2 } table.sort(t, function(a, b) return a > b end) table.remove(t, 1) return t',
  "return redis.error_reply('MINE text')",
  "return { pcall(function() return redis.call('HGET', KEYS[1], 'f') end) }",
  "return string.gsub('{r:k}:queue', 'queue$', 'grants:') .. string.match('12:34:m', '^(%d+):(%d+):(%a)$')",
];

/** What the library reads of an error: its code and what it says, but not the position in the script. */
function withoutPosition(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(withoutPosition);
  const thrown = reply instanceof Error ? reply.message : undefined;
  const message = thrown ?? (isError(reply as Reply) ? (reply as { err: string }).err : undefined);
  if (message === undefined) return statusText(reply);
  const own = message.replace(/ script: .*$/, '').replace(/^ERR user_script:\d+: /, 'ERR ');
  // Valkey leaves the name out.
  return `error: ${own.replace(/ (Redis )?command (called )?from /, ' command $2from ')}`;
}

function statusText(reply: unknown): unknown {
  return typeof reply === 'object' && reply !== null && 'ok' in reply ? reply.ok : reply;
}

async function main(options: string): Promise<void> {
  const client = createClient(JSON.parse(options));
  await client.connect();
  const server = new RedisServer(new Timeline(), await createScriptEngine(), () => undefined);
  const compare = async (asked: readonly string[]): Promise<void> => {
    // Within a script, since all commands of the library are: there replies are those of RESP2.
    const command = asked[0] === 'EVAL' ? asked : ['EVAL', 'return redis.call(unpack(ARGV))', '0', ...asked];
    const ofRedis = withoutPosition(await client.sendCommand([...command]).catch((error: unknown) => error));
    const simulated = withoutPosition(server.execute(connection, command));
    const isThere = (await client.exists(KEY)) === 1;
    if (JSON.stringify(simulated) !== JSON.stringify(ofRedis) || server.keys.has(KEY) !== isThere) {
      console.log(asked.join(' '), { ofRedis, simulated });
    }
  };
  for (const command of COMMANDS) await compare(command.map((word) => (word === 'K' ? KEY : word)));
  for (const script of SCRIPTS) {
    await compare(['SET', KEY, '12345678901234567']);
    await compare(['EVAL', script, '1', KEY]);
  }
  await client.del(KEY);
  client.destroy();
  console.log(`${COMMANDS.length} commands and ${SCRIPTS.length} scripts were compared`);
}

void main(process.argv[2] ?? '{}');
