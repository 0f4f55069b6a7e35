/**
 * Keeps Redis away from an application that goes on calling, and prints what that costs, as JSON:
 *
 *     node --expose-gc -r esbuild-register scripts/outage.ts refused|silent [type] [seconds] [calls a second] [keys]
 *
 * `refused`: the server is killed, and started again. `silent`: it is frozen, and its connections stay open. Without a
 * number of keys, each call has one of its own, and the registry's cache of locks grows with them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { type LockType, RedisLockRegistry } from '../lib';
import { LOCK_TYPES } from '../lib/protocols/lock-types';
import { type RedisServer, startRedis } from '../support/redis';

type Kind = 'refused' | 'silent';

/** Different keys. */
const KEYS = Number(process.argv[6] ?? Number.MAX_SAFE_INTEGER);

/** ms */
const WAIT_TIME = 200;

/** ms between two bursts of calls, and between two looks at the memory. */
const TICK = 100;
const LOOK = 5_000;

/** ms after the outage, in which the last removals are sent. */
const AFTER = 15_000;

/** ms after that, in which nothing is sent. */
const QUIET = 3_000;

async function main(): Promise<void> {
  const [kind, type = 'spin', seconds = '600', rate = '200'] = process.argv.slice(2);
  const lockType = LOCK_TYPES.find((one) => one === type);
  if ((kind !== 'refused' && kind !== 'silent') || lockType === undefined) throw new Error('See the head of this file');
  const dir = await mkdtemp(join(tmpdir(), 'outage-'));
  try {
    console.log(JSON.stringify(await outage(kind, lockType, Number(seconds), Number(rate), dir)));
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function outage(kind: Kind, lockType: LockType, seconds: number, rate: number, dir: string) {
  let server = await startRedis({ dir });
  const client = createClient({ socket: { ...server.address, reconnectStrategy: 50 } });
  client.on('error', () => undefined);
  await client.connect();
  const registry = new RedisLockRegistry(client, { registryKey: 'outage', lockType });
  // What the code itself takes, and a registry in use.
  await new Application(registry, rate, 'before').callFor(5_000);
  await sleep(1_000);
  const before = memory();
  const commandsBefore = kind === 'silent' ? await commandsOf(server) : 0;

  if (kind === 'silent') server.kill('SIGSTOP');
  else await kill(server);
  const application = new Application(registry, rate, 'key');
  let most = before;
  const look = (): void => {
    const now = memory();
    most = { rss: Math.max(most.rss, now.rss), heap: Math.max(most.heap, now.heap) };
    process.stderr.write(`${application.calls} calls: ${JSON.stringify(difference(now, before))}\n`);
  };
  const looking = setInterval(look, LOOK);
  await application.callFor(seconds * 1_000);
  await sleep(WAIT_TIME * 2);
  clearInterval(looking);
  look();
  const { calls: abandoned, outcomes } = application;

  if (kind === 'silent') server.kill('SIGCONT');
  else server = await startRedis({ dir });
  await sleep(AFTER);
  const commands = (await commandsOf(server)) - commandsBefore;
  await sleep(QUIET);
  const later = (await commandsOf(server)) - commandsBefore - commands;
  const admin = await createClient({ socket: server.address }).connect();
  const keysLeft = (await admin.keys('*outage:key*')).length;
  const after = await registry.run('after', () => 'ran');
  await registry.close();
  for (const one of [client, admin]) one.destroy();
  await server.stop();
  return {
    kind,
    lockType,
    seconds,
    abandoned,
    outcomes,
    memory: difference(most, before),
    commands,
    later,
    keysLeft,
    after,
  };
}

/** Calls, as often. */
class Application {
  readonly outcomes: Record<string, number> = {};
  calls = 0;
  readonly #registry: RedisLockRegistry;
  readonly #rate: number;
  readonly #name: string;

  constructor(registry: RedisLockRegistry, rate: number, name: string) {
    this.#name = name;
    this.#registry = registry;
    this.#rate = rate;
  }

  async callFor(ms: number): Promise<void> {
    const startedAt = performance.now();
    for (let now = startedAt; now < startedAt + ms; now = performance.now()) {
      while (this.calls < ((now - startedAt) * this.#rate) / 1_000) void this.#call();
      await sleep(TICK);
    }
  }

  async #call(): Promise<void> {
    const key = `${this.#name}${++this.calls % KEYS}`;
    const outcome = await this.#registry
      .run(key, () => 'ran', { waitTime: WAIT_TIME })
      .catch((error: Error) => error.name);
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
  }
}

async function kill(server: RedisServer): Promise<void> {
  server.kill('SIGKILL');
  await server.stop();
}

/** Scripts that the server ran. */
async function commandsOf({ address }: RedisServer): Promise<number> {
  const admin = await createClient({ socket: address }).connect();
  const stats = await admin.info('commandstats');
  admin.destroy();
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

interface Memory {
  readonly rss: number;
  readonly heap: number;
}

function memory(): Memory {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heap: heapUsed };
}

/** In MB. */
function difference(more: Memory, less: Memory): Memory {
  return { rss: Math.round((more.rss - less.rss) / 1e5) / 10, heap: Math.round((more.heap - less.heap) / 1e5) / 10 };
}

void main();
