import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import type { RedisLockRegistry } from '../../lib';
import { installEmbeddedRedis, startEmbeddedRedis } from '../../support/embedded-redis/start';
import { startRedis } from '../../support/redis';
import { findRedisBinary } from '../../support/redis-binary';

export type Redis = ReturnType<typeof newClient>;

/** ms; every write sets it, so that a demo leaves no keys behind. KEEPTTL would keep no expiry on a missing key. */
const expiration = { type: 'PX', value: 30_000 } as const;

const SEGMENTS = 20; // one for each buyer of the four processes, so that all can sell at once

/** The stock that a demo sells from. */
export interface Stock {
  fill(pieces: number): Promise<unknown>;
  /** The remaining pieces, one number for each part of the stock. */
  left(): Promise<readonly number[]>;
  /** Sells one piece; false when the stock is sold out. */
  sellOne(): Promise<boolean>;
}

/** One way to place an order. */
export interface Scenario {
  readonly title: string;
  /** How many buyers each worker process serves at a time. */
  readonly buyers: number;
  open(redis: Redis, key: string, locks: RedisLockRegistry): Stock;
}

/** One counter in Redis, with a read-modify-write that loses updates unless it is locked. */
function oneCounter(redis: Redis, key: string, work: () => number): Stock {
  const left = async () => [Number(await redis.get(key))];
  const fill = (pieces: number) => redis.set(key, pieces, { expiration });
  return {
    fill,
    left,
    async sellOne() {
      const [pieces = 0] = await left();
      if (pieces <= 0) return false;
      await sleep(work()); // payment, invoice, ...: other workers read the same number meanwhile
      await fill(pieces - 1);
      return true;
    },
  };
}

/** The same stock, each order under one lock. */
function locked(stock: Stock, locks: RedisLockRegistry): Stock {
  return { ...stock, sellOne: () => locks.run('stock', () => stock.sellOne()) };
}

/** The same stock, with one counter for each segment of the lock: one order at a time in each. */
function segmented(redis: Redis, key: string, locks: RedisLockRegistry, work: () => number): Stock {
  const lock = locks.segmented('segmented-stock', { segments: SEGMENTS });
  const part = (name: string) => `${key}:${name}`;
  return {
    fill: (pieces) =>
      Promise.all(lock.split(pieces).map(({ name, amount }) => redis.set(part(name), amount, { expiration }))),
    left: async () => (await redis.mGet(lock.names.map(part))).map(Number),
    async sellOne() {
      const answer = await lock.run(async ({ name, exhausted }) => {
        if (Number(await redis.get(part(name))) < 1) return exhausted;
        await sleep(work());
        return redis.decr(part(name)); // a counter that was sold twice would stay below zero
      });
      return answer.served;
    },
  };
}

const moment = () => 1 + Math.random() * 2;
const twentyMs = () => 20;

export const scenarios = {
  unlocked: { title: 'without lock', buyers: 3, open: (redis, key) => oneCounter(redis, key, moment) },
  locked: { title: 'with lock', buyers: 3, open: (redis, key, locks) => locked(oneCounter(redis, key, moment), locks) },
  oneLock: {
    title: 'one lock',
    buyers: 5,
    open: (redis, key, locks) => locked(oneCounter(redis, key, twentyMs), locks),
  },
  segmented: {
    title: `${SEGMENTS} segments`,
    buyers: 5,
    open: (redis, key, locks) => segmented(redis, key, locks, twentyMs),
  },
} satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof scenarios;

function newClient(url: string) {
  return createClient({ url, socket: { reconnectStrategy: false, connectTimeout: 4_000 } });
}

/** A connection without reconnects: a demo ends when it loses its Redis. */
export async function connect(url: string): Promise<Redis> {
  const client = newClient(url);
  client.on('error', () => {}); // the affected commands reject too
  return client.connect();
}

export interface Server {
  readonly url: string;
  /** Without the password. */
  readonly name: string;
  readonly isEmbedded?: boolean;
  stop(): Promise<void>;
}

/** The Redis that REDIS_URL names, else a private instance of an installed server, else an embedded one. */
export async function openServer(): Promise<Server> {
  const given = process.env.REDIS_URL;
  if (given) {
    const { protocol, host, pathname } = new URL(URL.canParse(given) ? given : 'redis:REDIS_URL');
    return { url: given, name: `Redis at ${protocol}//${host}${pathname}`, stop: async () => {} };
  }
  if (findRedisBinary()) {
    const { name, version, address, stop } = await startRedis({ port: true });
    const { host, port } = address as { host: string; port: number };
    return { url: `redis://${host}:${port}`, name: `a private ${name} ${version}`, stop };
  }
  installEmbeddedRedis();
  const { url, stop } = await startEmbeddedRedis();
  return { url, name: 'an embedded js-redis-server (REDIS_URL names a real one)', isEmbedded: true, stop };
}
