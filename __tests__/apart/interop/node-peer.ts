/**
 * A Node process that executes lock commands, in the same line protocol as the Java process: see java/.../Peer.java. Each
 * caller has its own registry, as if it were a process.
 */

import { createInterface } from 'node:readline';
import { createClient, createCluster } from 'redis';
import { type Lease, RedisLockRegistry } from '../../../lib';
import type { LockType } from '../../../lib/kinds';
import { compete } from './compete';
import { KINDS, type LockKind } from './kinds';
import { LEGACY_CHANNEL } from './versions';

const [at = '', registryKey = ''] = process.argv.slice(2);
/**
 * Locks of Spring are named `registryKey:key`, those of Redisson by their key alone. A library of another language has a
 * registry key of its own: `shared@orders/pub-sub`.
 */
const registryKeyOf = (kind: string) => {
  const [, ofLibrary] = /^shared@([^/]*)\//.exec(kind) ?? [];
  return ofLibrary ?? (kind.startsWith('spring') ? registryKey : '');
};
/** Of a kind, or of a lock of Java and a type of ours, which has its default intervals. */
const optionsOf = (kind: string) => {
  const [name = '', lockType, more] = kind.split('/');
  // As the page for other languages says.
  const ofLibrary = name.startsWith('shared@') && (lockType !== 'spin' || more === 'sharedWithPollers');
  return {
    // Those of Spring have no ticket in the queue of `fair`.
    sharedWithPollers: ofLibrary || name.endsWith('spin') || lockType === 'fair',
    ...(lockType === undefined ? KINDS[name as LockKind].options : { lockType: lockType as LockType }),
  };
};
const socketOf = (port: string) => ({ socket: { host: '127.0.0.1', port: Number(port) } });
const connect = async () => {
  const [server = '', masters] = at.split('cluster:');
  const client =
    masters === undefined
      ? createClient(socketOf(server))
      : createCluster({ rootNodes: masters.split(',').map(socketOf) });
  client.on('error', () => undefined);
  await client.connect();
  return client;
};

/** One caller, which executes its commands one after the other. */
class Caller {
  #last: Promise<unknown> = Promise.resolve();
  readonly #registries = new Map<string, RedisLockRegistry>();
  readonly #leases = new Map<string, Lease>();

  do<T>(what: () => Promise<T>): Promise<T> {
    const done = this.#last.then(what);
    this.#last = done.catch(() => undefined);
    return done;
  }

  registry(client: Client, kind: string, expireAfter: number): RedisLockRegistry {
    const name = `${kind} ${expireAfter}`;
    let registry = this.#registries.get(name);
    if (registry === undefined) {
      const options = optionsOf(kind);
      registry = new RedisLockRegistry(client, {
        ...options,
        registryKey: registryKeyOf(kind),
        expireAfter,
        fencing: true,
        legacyChannel: options.lockType === 'pub-sub' && LEGACY_CHANNEL,
      });
      this.#registries.set(name, registry);
    }
    return registry;
  }

  keep(key: string, lease: Lease | null): boolean {
    if (lease !== null) this.#leases.set(key, lease);
    return lease !== null;
  }

  async unlock(key: string): Promise<true> {
    const lease = this.#leases.get(key);
    if (lease === undefined) throw new Error(`Lock "${key}" is not held`);
    this.#leases.delete(key);
    await lease.unlock();
    return true;
  }
}

type Client = Awaited<ReturnType<typeof connect>>;

/** Increments a counter by reading and writing it, and checks mutual exclusion independently. Returns the violations. */
async function count(registry: RedisLockRegistry, oracle: Client, key: string, callers: number, times: number) {
  let violations = 0;
  const section = async () => {
    if ((await oracle.incr(`${key}:inside`)) !== 1) violations++;
    await oracle.set(`${key}:counter`, Number(await oracle.get(`${key}:counter`)) + 1);
    if ((await oracle.decr(`${key}:inside`)) !== 0) violations++;
  };
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let round = 0; round < times; round++) await registry.run(key, section);
    }),
  );
  return violations;
}

async function main(): Promise<void> {
  const [client, oracle] = await Promise.all([connect(), connect()]);
  const callers = new Map<string, Caller>();

  const obey = async (caller: Caller, words: readonly string[]) => {
    const [kind = '', , ttl, verb = '', key = '', ...rest] = words;
    const registry = caller.registry(client, kind, Number(ttl));
    const lock = registry.obtain(key);
    const args = rest.map(Number);
    const [first, second] = args;
    switch (verb) {
      case 'lock':
        return caller.keep(key, await lock.lock());
      case 'tryLock':
        return caller.keep(key, await lock.tryLock({ waitTime: first ?? 0 }));
      case 'unlock':
        return caller.unlock(key);
      case 'remaining':
        return client.pTTL([registryKeyOf(kind), key].filter(Boolean).join(':'));
      case 'token':
        return registry.run(key, ({ fencingToken }) => fencingToken);
      case 'compete': {
        const take = async () => {
          const lease = await lock.lock();
          return () => lease.unlock();
        };
        const [callers = 1, work = 0, ms = 0] = args;
        const [, , , witness = key] = rest;
        const { turns, longestWait, violations } = await compete(take, oracle, witness, callers, work, ms);
        return [turns, Math.round(longestWait), violations].join();
      }
      case 'count':
        return count(registry, oracle, key, first ?? 1, second ?? 1);
      default:
        throw new Error(verb);
    }
  };

  const hear = async (line: string) => {
    const [id, ...words] = line.split(' ');
    const [, name = ''] = words;
    const caller = callers.get(name) ?? new Caller();
    callers.set(name, caller);
    const answer = await caller
      .do(() => obey(caller, words))
      .then(
        (value) => `ok ${value}`,
        (error: unknown) => `error ${String(error)}`,
      );
    process.stdout.write(`${id} ${answer}\n`);
  };

  createInterface({ input: process.stdin })
    .on('line', (line) => void hear(line))
    .on('close', () => process.exit(0));
  process.stdout.write('ready\n');
}

void main();
