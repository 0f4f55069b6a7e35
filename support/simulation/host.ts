import type { DistributedLock, RedisLockRegistry } from '../../lib';
import { Random } from '../random';
import type { ClientDirectory } from './client/client-directory';
import { SimulatedClient } from './client/simulated-client';
import { SimulatedPool } from './client/simulated-pool';
import type { LockType, ProcessPlan, Round } from './plan';
import type { LibraryInstance } from './process/library';
import { SimulatedProcess } from './process/simulated-process';
import { NO_SCRIPT } from './server/redis-server';
import { type Host, REGISTRY_KEY, type World } from './world';

/** A process with a client that connects, and a registry. */
export function createHost(world: World, plan: ProcessPlan, index: number, instance: LibraryInstance): Host {
  const { timeline, history, network } = world;
  const random = new Random(world.plan.seed, `process ${index}`);
  const process = new SimulatedProcess(`P${index + 1}`, timeline, plan.clock, random, history);
  let uuids = 0;
  const uuid = (): string => `${index + 1}0000000-0000-4000-8000-${String(uuids++).padStart(12, '0')}`;
  instance.surroundings = {
    now: () => process.now(),
    wallNow: () => process.wallNow(),
    immediate: (run) => process.immediate(run),
    setTimeout: (callback, ms) => process.setTimeout(callback, ms),
    clearTimeout: (timer) => process.clearTimeout(timer),
    randomUUID: uuid,
    random: () => random.unit(),
  };
  const directory: ClientDirectory = {
    network,
    process,
    clients: new Set(),
    everyClient: new Set(),
    outage: { until: 0, tries: Number.POSITIVE_INFINITY },
    hearing: undefined,
    has: (connection) => [...directory.clients].some((client) => client.connection === connection),
    asked: (client, [name]) => {
      host.counts.commands++;
      if (name !== 'WAIT' || world.plan.isCalm || !host.moments.chance(network.replicas.areInTrouble ? 0.4 : 0.05))
        return;
      // Before it is written: it goes over the next connection.
      timeline.after(0, () => client.connection?.cut('executed', 'at once'));
      directory.disturbed();
    },
    duplicated: () => host.counts.connections++,
    replied: (reply) => {
      host.lastReply = timeline.now;
      if (reply === NO_SCRIPT) host.lastUnknown = timeline.now;
      host.unansweredSince = undefined;
    },
    disturbed: () => (host.disturbedUntil = Math.max(host.disturbedUntil, timeline.now + 1)),
    unheard: (message) => host.unheard.add(message),
    // What it says of its process, such as whether messages reach it, may be of the past.
    cameLate: (command, after) => {
      directory.disturbed();
      for (const argument of command) host.cameLate.set(argument, after);
    },
  };
  const connect = (isSubscriber = false): SimulatedClient => {
    const client = new SimulatedClient(directory, plan.client, isSubscriber);
    client.connect().catch(() => undefined);
    return client;
  };
  const client =
    plan.connections === 1
      ? connect()
      : new SimulatedPool(
          Array.from({ length: plan.connections }, () => connect()),
          random,
          plan.client.repeats,
        );
  const subscriber = plan.connections > 1 && plan.givesSubscriber ? connect(true) : undefined;
  const make = (): RedisLockRegistry =>
    new instance.library.RedisLockRegistry(client, {
      ...plan.options,
      ...(subscriber === undefined ? {} : { subscriber }),
      registryKey: REGISTRY_KEY,
      name: 'simulated',
      onWarning: ({ code, message }) => history.note(process.name, () => `warning ${code}: ${message}`),
    });
  const [registry, entries] = instance.counting(make);
  const host: Host = {
    index,
    process,
    registry,
    client,
    directory,
    entries,
    counts: { commands: 0, calls: 0, connections: 0, reopened: 0 },
    clientId: registry.id,
    registryOptions: plan.options,
    closing: 'no',
    leftByClose: new Set(),
    closedInTrouble: false,
    whenClosed: () => {
      if (subscriber?.isOpen) subscriber.destroy();
    },
    disturbedUntil: 0,
    cutOffUntil: 0,
    refusal: undefined,
    lastDelayed: Number.NEGATIVE_INFINITY,
    lastCutOff: Number.NEGATIVE_INFINITY,
    moments: new Random(world.plan.seed, `moments ${index}`),
    lastDisturbed: Number.NEGATIVE_INFINITY,
    lastReply: Number.NEGATIVE_INFINITY,
    lastUnknown: Number.NEGATIVE_INFINITY,
    unansweredSince: undefined,
    isUnaware: false,
    isUncounted: false,
    lastPaused: Number.NEGATIVE_INFINITY,
    cameLate: new Map(),
    unheard: new Set(),
  };
  return host;
}

/** The lock that a caller takes. */
export function lockOf(
  { registry }: Host,
  keys: readonly string[],
  { kind, permits }: Pick<Round, 'kind' | 'permits'>,
  type: LockType,
): DistributedLock {
  const [key = ''] = keys;
  if (type === 'multi') return registry.multi(keys);
  if (kind === 'semaphore') return registry.semaphore(key, { permits });
  return kind === undefined ? registry.obtain(key) : registry.readWrite(key)[kind];
}
