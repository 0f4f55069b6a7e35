/**
 * A Node process that executes lock commands with other lock libraries of Node, in the line protocol of Peer.java. Its
 * argument is the port of Redis. It is bundled into the folder where the libraries are.
 */

import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { compete } from '../../compete';

/** A module without types: only the benchmarks have the packages. */
const load = (name: string) => import(name);

const redis = () => ({ host: '127.0.0.1', port: Number(process.argv[2]) });

/** A lock of one caller, with its own owner. */
interface ForeignLock {
  /** One attempt, or attempts for about `wait` ms. */
  take(wait?: number): Promise<boolean>;
  /** Rejects if the library says that the lock was lost. */
  release(): Promise<unknown>;
  about(): Promise<string>;
}

type RedlockClass = new (
  clients: readonly unknown[],
  settings: { readonly retryCount: number },
) => Record<'acquire' | 'lock' | 'release' | 'unlock', (...args: unknown[]) => Promise<unknown>> & {
  on(event: 'error', listener: () => void): void;
};

type Create = (name: string, ttl: number) => ForeignLock;

/** More retries than any test waits for. */
const ENDLESS = 1_000_000;

const refusedWith = (refusal: string) => (error: Error) => {
  if (error.name !== refusal) throw error;
  return undefined;
};

async function main(): Promise<void> {
  const { Redis } = await load('ioredis');
  const [client, oracle] = [new Redis(redis()), new Redis(redis())];

  /** The versions differ in the names of their calls, and 5 takes a list of resources. */
  const redlocks = (Redlock: RedlockClass, is5: boolean): Create => {
    const [take, refusal] = is5 ? (['acquire', 'ExecutionError'] as const) : (['lock', 'LockError'] as const);
    return (name, ttl) => {
      const attempt = (retryCount: number) => {
        const locks = new Redlock([client], { retryCount });
        locks.on('error', () => undefined);
        return locks[take](is5 ? [name] : name, ttl);
      };
      let held: unknown;
      return {
        async take(wait) {
          const retries = wait === undefined ? -1 : Math.ceil(wait / 200);
          held = await attempt(retries).catch(refusedWith(refusal));
          return held !== undefined;
        },
        // A release is retried too, by default as often as the taking was.
        release: () => new Redlock([client], { retryCount: 0 })[is5 ? 'release' : 'unlock'](held),
        about: async () =>
          `${take}(): ${await attempt(0).then(
            () => 'a lock',
            ({ name: error }: Error) => error,
          )}`,
      };
    };
  };

  const { Mutex } = await load('redis-semaphore');
  const { Verrou } = await load('@verrou/core');
  const { redisStore } = await load('@verrou/core/drivers/redis');
  const verrou = new Verrou({
    default: 'redis',
    stores: { redis: { driver: redisStore({ connection: client }) } },
  });
  const { createLock, IoredisAdapter } = await load('redlock-universal');
  const adapter = new IoredisAdapter(client);

  const libraries: Readonly<Record<string, Create>> = {
    redlock: redlocks((await load('redlock')).default, true),
    redlock4: redlocks((await load('redlock4')).default, false),

    'redis-semaphore': (name, ttl) => {
      const of = (wait = ENDLESS, attempts = Number.POSITIVE_INFINITY) =>
        new Mutex(client, name, { lockTimeout: ttl, acquireTimeout: wait, acquireAttemptsLimit: attempts });
      let mutex: { tryAcquire(): Promise<boolean>; release(): Promise<void> };
      return {
        take(wait) {
          mutex = wait === 0 ? of(ENDLESS, 1) : of(wait);
          return mutex.tryAcquire();
        },
        release: () => mutex.release(),
        about: async () => `tryAcquire() ${await of(ENDLESS, 1).tryAcquire()}`,
      };
    },

    verrou: (name, ttl) => {
      const lock = verrou.createLock(name, ttl || null);
      return {
        take: (wait) => (wait === 0 ? lock.acquireImmediately() : lock.acquire({ retry: { timeout: wait } })),
        release: () => lock.release(),
        about: async () => `isLocked() ${await lock.isLocked()}`,
      };
    },

    'redlock-universal': (name, ttl) => {
      const of = (wait = ENDLESS) => createLock({ adapter, key: name, ttl, retryAttempts: Math.ceil(wait / 100) });
      let handle: unknown;
      return {
        async take(wait) {
          handle = await of(wait).acquire().catch(refusedWith('LockAcquisitionError'));
          return handle !== undefined;
        },
        async release() {
          if (!(await of().release(handle))) throw new Error('release(): false');
        },
        about: async () => `isLocked() ${await of().isLocked(name)}`,
      };
    },
  };

  const held = new Map<string, ForeignLock>();
  const obey = async ([kind = '', caller, ttl, verb, name = '', ...rest]: readonly string[]) => {
    const create = libraries[kind];
    if (create === undefined) throw new Error(kind);
    const lock = create(name, Number(ttl));
    const place = `${caller} ${name}`;
    switch (verb) {
      case 'lock':
      case 'tryLock': {
        const wait = verb === 'lock' ? undefined : Number(rest[0] ?? 0);
        if (!(await lock.take(wait))) return false;
        held.set(place, lock);
        return true;
      }
      case 'unlock': {
        const holding = held.get(place);
        held.delete(place);
        await holding?.release();
        return true;
      }
      case 'about':
        return lock.about();
      case 'compete': {
        const take = async () => {
          const own = create(name, Number(ttl));
          await own.take();
          return () => own.release();
        };
        const [callers = 1, work = 0, ms = 0] = rest.map(Number);
        const { turns, longestWait, violations } = await compete(take, oracle, rest[3] ?? name, callers, work, ms);
        return [turns, Math.round(longestWait), violations].join();
      }
      default:
        throw new Error(verb);
    }
  };

  const lastOf = new Map<string, Promise<unknown>>();
  createInterface({ input: process.stdin })
    .on('line', (line) => {
      const [id, ...words] = line.split(' ');
      const [, caller = ''] = words;
      const answer = (lastOf.get(caller) ?? Promise.resolve())
        .then(() => obey(words))
        .then(
          (value) => `ok ${value}`,
          (error: unknown) => `error ${String(error).replaceAll('\n', ' ')}`,
        )
        .then((text) => process.stdout.write(`${id} ${text}\n`));
      lastOf.set(caller, answer);
    })
    .on('close', () => process.exit(0));
  while ((await oracle.ping()) !== 'PONG') await sleep(10);
  process.stdout.write('ready\n');
}

void main();
