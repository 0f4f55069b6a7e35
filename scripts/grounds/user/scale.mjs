// One process of many: its callers lock keys of a cluster until the time is over, and check each section by themselves.
import { createCluster } from 'redis';
import { RedisLockRegistry } from 'redis-lock-registry';

const { ports, lockType, callers, keys, hot, ms } = JSON.parse(process.env.GROUNDS);
const rootNodes = ports.map((port) => ({ socket: { host: '127.0.0.1', port } }));
const cluster = await createCluster({ rootNodes }).on('error', () => undefined).connect();
const warnings = {};
const count = (counts, what) => {
  counts[what] = (counts[what] ?? 0) + 1;
};
const registry = new RedisLockRegistry(cluster, {
  registryKey: 'scale',
  lockType,
  fencing: true,
  onWarning: ({ code }) => count(warnings, code),
});

/** Both know of one key, so they run while a slot moves, too. */
const ENTER = `local inside = redis.call('HINCRBY', KEYS[1], 'inside', 1)
local last = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
redis.call('HSET', KEYS[1], 'token', ARGV[1])
return { inside, last < tonumber(ARGV[1]) and 1 or 0 }`;
const LEAVE = "return redis.call('HINCRBY', KEYS[1], 'inside', -1)";

/** Not by the library's own commands: another way to see that nobody else is there. */
async function check(script, key, ...args) {
  for (let tries = 1; ; tries++) {
    try {
      return await cluster.eval(script, { keys: [`check:{${key}}`], arguments: args });
    } catch (error) {
      if (tries === 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

const seen = { locks: 0, overlaps: 0, disorder: 0, checks: 0, longest: 0, errors: {}, warnings };
console.log('ready');
await new Promise((resolve) => process.stdin.once('data', resolve));
process.stdin.destroy();
const before = process.cpuUsage();
const until = performance.now() + ms;

async function caller() {
  while (performance.now() < until) {
    // One of five goes to a few keys that many want.
    const key = Math.random() < 0.2 ? `hot:${Math.floor(Math.random() * hot)}` : `key:${Math.floor(Math.random() * keys)}`;
    const asked = performance.now();
    try {
      await registry.run(
        key,
        async ({ fencingToken, signal }) => {
          seen.longest = Math.max(seen.longest, performance.now() - asked);
          const [inside, isAscending] = await check(ENTER, key, String(fencingToken));
          // A task whose lease is lost has no section any more.
          if (inside !== 1 && !signal.aborted) seen.overlaps++;
          if (isAscending !== 1 && !signal.aborted) seen.disorder++;
          await check(LEAVE, key);
          seen.checks += 2;
          seen.locks++;
        },
        { waitTime: 120_000 },
      );
    } catch (error) {
      count(seen.errors, `${error.name}${error.reason ? ` (${error.reason})` : ''}`);
    }
  }
}

await Promise.all(Array.from({ length: callers }, caller));
const { user, system } = process.cpuUsage(before);
await registry.close();
cluster.destroy();
console.log(JSON.stringify({ ...seen, cpu: (user + system) / 1_000 }));
