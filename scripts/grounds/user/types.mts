// What a user of TypeScript writes: every entry point, and every adapter with its client. It is compiled, and never run.
import { Redis as Upstash } from '@upstash/redis';
import type { GlideClient, GlideClusterClient } from '@valkey/valkey-glide';
import { Cluster, Redis } from 'ioredis';
import { Redis as Valkey } from 'iovalkey';
import cron from 'node-cron';
import { createClient, createClientPool, createCluster } from 'redis';
import {
  type Lease,
  LockLostError,
  type LockOptions,
  LockRegistry,
  type LockWarning,
  RedisLockRegistry,
} from 'redis-lock-registry';
import { dashboard, toNode } from 'redis-lock-registry/dashboard';
import { fromIoredis } from 'redis-lock-registry/ioredis';
import { Locked, LockModule } from 'redis-lock-registry/nestjs';
import { runCoordinator } from 'redis-lock-registry/node-cron';
import { instrumentLocks } from 'redis-lock-registry/opentelemetry';
import { InMemoryLockRegistry, InMemoryLocks } from 'redis-lock-registry/testing';
import { fromUpstash } from 'redis-lock-registry/upstash';
import { fromGlide } from 'redis-lock-registry/valkey-glide';
import { webLocks } from 'redis-lock-registry/web-locks';

declare const glide: GlideClient;
declare const glideCluster: GlideClusterClient;
declare const somewhere: { readonly host: string; readonly port: number };

const client = createClient();
export const registries: readonly LockRegistry[] = [
  client,
  createClientPool(),
  createCluster({ rootNodes: [{ socket: somewhere }] }),
  fromIoredis(new Redis()),
  fromIoredis(new Cluster([somewhere])),
  fromIoredis(new Valkey()),
  fromGlide(glide),
  fromGlide(glideCluster),
  fromUpstash(new Upstash({ url: 'https://example.com', token: 'token' })),
].map((one) => new RedisLockRegistry(one, { registryKey: 'types', lockType: 'spin' }));

const onWarning = ({ code, message, holder }: LockWarning) => console.log(code, message, holder?.name);
const registry = new RedisLockRegistry(client, { registryKey: 'types', lockType: 'fair', fencing: true, onWarning });
const options: LockOptions = { waitTime: 1_000, signal: AbortSignal.timeout(1_000) };

export async function uses(locks: LockRegistry): Promise<number> {
  await using lease = await locks.obtain('key').lock(options);
  const { signal, remaining }: Lease = lease;
  const text: string = await locks.run('key', async ({ signal: own }) => (own.aborted ? 'lost' : 'held'), options);
  const tried = await locks.tryRun('key', () => 42);
  const ran: number = tried.ran ? tried.value : 0;
  const once: { readonly price: number } = await locks.once('price', () => ({ price: ran }), { keepFor: 1_000 });
  await locks.lead('leader', ({ signal: own }) => own.throwIfAborted(), { signal });
  await locks.semaphore('permits', { permits: 3 }).run(() => undefined);
  await locks.readWrite('file').read.run(() => undefined);
  await webLocks(locks).request('name', { mode: 'shared' }, (lock) => lock?.name);
  if (signal.reason instanceof LockLostError) console.log(signal.reason.reason, text);
  return remaining + once.price;
}

export class Checkout {
  readonly locks = new InMemoryLockRegistry({ locks: new InMemoryLocks() });

  checkOut(id: string): Promise<string> {
    return this.locks.run(id, () => 'done');
  }
}
Locked((id: string) => `cart:${id}`)(
  Checkout.prototype,
  'checkOut',
  Object.getOwnPropertyDescriptor(Checkout.prototype, 'checkOut') as TypedPropertyDescriptor<Checkout['checkOut']>,
);
export const module = LockModule.forRoot({ client: () => client.connect(), registryKey: 'shop' });
cron.schedule('* * * * *', () => undefined, { distributed: true, runCoordinator: runCoordinator(registry) });
instrumentLocks();
export const handler = toNode(dashboard(client, { token: 'token' }));
