import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach } from '@jest/globals';
import type { RedisClient, RedisLockRegistry, RedisLockRegistryOptions } from '../../../lib';
import { acquireChannel } from '../../../lib/api/diagnostics';
import type { AcquireMessage } from '../../../lib/api/messages';
import { processOf } from '../../../lib/kinds/fair/ticket';
import { LockNames } from '../../../lib/redis/names';
import { machineDelay } from '../../support/machine-delay';
import { PrivateRedis } from '../../support/private-redis';
import { createProxiedRegistry, type ProxiedRegistry } from '../../support/proxied-registry';
import { type TestClient, uniqueKey } from '../../support/redis';
import { scriptsRun } from '../../support/server-load';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';
import { WorkerProcess } from '../../support/worker-process';
import { type Job, KEY, type Report } from './worker';

/** A process that uses fair locks. */
export type FairWorker = WorkerProcess<Job, Report>;

type Options = Omit<RedisLockRegistryOptions, 'registryKey' | 'onWarning' | 'lockType'>;

/** ms of allowed delay, for busy cores and several processes. */
export const SLACK = 500;

/**
 * ms between a caller that waits in its process and the next one of another process. Redis learns when the first called
 * from its age when it is sent: a delay on that way makes it seem later. A busy machine delays by less than this, and by
 * what it was late before.
 */
const GAP = 250;

/** Calls; says whether the caller waits for others of its process, so that it has no ticket. */
async function callTraced<T>(call: () => Promise<T>): Promise<{ called: Promise<T>; isLocal: boolean }> {
  const messages: AcquireMessage[] = [];
  const note = (message: unknown) => void messages.push(message as AcquireMessage);
  acquireChannel.start.subscribe(note);
  const called = call();
  acquireChannel.start.unsubscribe(note);
  called.catch(() => undefined);
  await new Promise(setImmediate);
  return { called, isLocal: messages[0]?.contention === 'local' };
}

/**
 * Callers one after another, in this order: each has its ticket in the queue, or waits for others of its process, which
 * has a ticket or the lock, before the next one calls. `queued` waits until the queue has so many tickets more.
 */
export async function callInTurn<T>(
  callers: readonly (() => Promise<T>)[],
  queued: (tickets: number) => Promise<unknown>,
): Promise<Promise<T>[]> {
  let tickets = 0;
  const waiting: Promise<T>[] = [];
  for (const call of callers) {
    const { called, isLocal } = await callTraced(call);
    waiting.push(called);
    if (isLocal) await sleep(GAP + Math.min(machineDelay() / 4, 4 * GAP));
    else await queued(++tickets);
  }
  return waiting;
}

/** Waits for the lock of a registry, when it is called. */
export const lock = (registry: RedisLockRegistry) => () => registry.obtain(KEY).lock();

/** A private server with a fair lock. */
export class FairFixture {
  readonly redis = PrivateRedis.install();
  /** The registryKey of the current test. */
  registryKey = uniqueKey('fair');

  /** Registers the hooks that open the fixture for the tests of the surrounding `describe`. */
  static install(): FairFixture {
    const fixture = new FairFixture();
    beforeEach(() => {
      fixture.registryKey = uniqueKey('fair');
    });
    return fixture;
  }

  get admin(): TestClient {
    return this.redis.admin;
  }

  get names(): LockNames {
    return new LockNames(this.registryKey, KEY);
  }

  get queue(): string {
    return this.names.companion('queue');
  }

  get tickets(): string {
    return this.names.companion('tickets');
  }

  /** A registry as of a new process. */
  async process(options: Options = {}): Promise<RedisLockRegistry> {
    return this.on(await this.redis.connect(), options);
  }

  on(client: RedisClient, options: Options = {}): RedisLockRegistry {
    return createRegistry(client, { fencing: true, ...options, registryKey: this.registryKey, lockType: 'fair' })
      .registry;
  }

  proxied(options: Options = {}): Promise<ProxiedRegistry> {
    return createProxiedRegistry(this.redis, {
      fencing: true,
      ...options,
      registryKey: this.registryKey,
      lockType: 'fair',
    });
  }

  /** Waits until the queue has this number of tickets, by default until the processes of all of them can be notified. */
  async queued(tickets: number, notifiedBy: 'message' | 'any' = 'message'): Promise<void> {
    await until(
      async () => {
        const waiting = await this.admin.zRange(this.queue, 0, -1);
        if (waiting.length !== tickets || notifiedBy === 'any') return waiting.length === tickets;
        const fields = await this.admin.hGetAll(this.tickets);
        return waiting.every((ticket) => fields[processOf(ticket)]?.endsWith(`:${notifiedBy}`));
      },
      { within: 10_000 },
    );
  }

  /** As `callInTurn`. */
  async enqueue<T>(
    callers: readonly (() => Promise<T>)[],
    notifiedBy: 'message' | 'any' = 'message',
  ): Promise<Promise<T>[]> {
    const before = await this.admin.zCard(this.queue);
    return callInTurn(callers, (tickets) => this.queued(before + tickets, notifiedBy));
  }

  /** Hands the lock over once, from one process to another. Then the server knows every script. */
  async handOverOnce(from: RedisLockRegistry, to: RedisLockRegistry): Promise<void> {
    const lease = await lock(from)();
    const [waiting] = await this.enqueue([lock(to)]);
    await lease.unlock();
    await (await waiting)?.unlock();
  }

  /** A worker process with so many callers. The queue has a ticket for the first of them. */
  async workerWith(callers: number): Promise<FairWorker> {
    const worker: FairWorker = await WorkerProcess.start(join(__dirname, 'worker.ts'));
    const before = await this.admin.zCard(this.queue);
    await worker.begin({ redis: { socket: this.redis.address }, registryKey: this.registryKey, callers });
    await worker.next('called');
    await this.queued(before + 1);
    await sleep(GAP);
    return worker;
  }

  /** Scripts that clients asked for since the server started, or since its last CONFIG RESETSTAT. */
  scriptsRun(): Promise<number> {
    return scriptsRun(this.admin);
  }

  /** Keys of this test in Redis, without the fencing counter, whose ttl is a day. */
  async keys(): Promise<string[]> {
    return (await this.admin.keys(`*${this.registryKey}*`)).filter((name) => !name.endsWith(':fence'));
  }
}
