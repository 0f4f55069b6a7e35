import type { RedisLockRegistry } from '../../lib';
import type { ClientDirectory } from './client/client-directory';
import type { Network } from './client/connection';
import type { SimulatedClient } from './client/simulated-client';
import type { SimulatedPool } from './client/simulated-pool';
import type { History } from './history';
import type { Plan, ProcessPlan } from './plan';
import type { SimulatedProcess } from './process/simulated-process';
import type { RedisServer } from './server/redis-server';
import type { Timeline } from './timeline';
import type { Violations } from './violations';

/** One process of the simulation with what it has of the library. */
export interface Host {
  readonly index: number;
  readonly process: SimulatedProcess;
  readonly registry: RedisLockRegistry;
  readonly client: SimulatedClient | SimulatedPool;
  readonly directory: ClientDirectory;
  /** How the library's owner values begin in this process. */
  readonly clientId: string;
  /** `close` was called, and whether it has settled. */
  closing: 'no' | 'closing' | 'closed';
  /** A lease was still held when `close` settled: its key is left to expire. */
  readonly leftByClose: Set<string>;
  /** It could not reach Redis while it closed. */
  closedInTrouble: boolean;
  readonly whenClosed: () => void;
  /** Until when a fault is known to last. */
  disturbedUntil: number;
  /** When it was last seen disturbed; -Infinity: never. */
  lastDisturbed: number;
  /** When a reply of a command was last read. */
  lastReply: number;
  /** When it was last seen paused. */
  lastPaused: number;
  readonly registryOptions: ProcessPlan['options'];
}

/** What one simulation consists of. */
export interface World {
  readonly plan: Plan;
  readonly timeline: Timeline;
  readonly history: History;
  readonly server: RedisServer;
  readonly network: Network;
  readonly hosts: readonly Host[];
  readonly violations: Violations;
}

export const REGISTRY_KEY = 'r';

export function lockName(key: string): string {
  return `${REGISTRY_KEY}:${key}`;
}

/** Who has the lock in Redis: the owner value; `undefined`: nobody. */
export function ownerOf(server: RedisServer, lock: string): string | undefined {
  const kind = server.keys.kind(lock);
  if (kind === 'string') return server.keys.get(lock, 'string');
  return kind === 'hash' ? server.keys.get(lock, 'hash')?.keys().next().value : undefined;
}

/** Whether a free lock is kept for those that poll, and for the queue after them: a call that ends meanwhile is refused. */
export function isLeftToPollers(server: RedisServer, lock: string): boolean {
  const until = server.keys.get(`{${lock}}:tickets`, 'hash')?.get('pause');
  return until !== undefined && Number(until) / 1_000 > server.time;
}

/** The process that an owner value belongs to. */
export function hostOf(world: World, owner: string | undefined): Host | undefined {
  return world.hosts.find(({ clientId }) => owner?.startsWith(`${clientId}:`));
}

/** Something is, or may be, wrong between this process and the server. */
export function isDisturbed({ timeline, server, network }: World, host: Host): boolean {
  if (timeline.now < host.disturbedUntil || host.process.isPaused || !server.isUp) return true;
  if (network.inbox.isFrozen) return true;
  for (const client of host.directory.clients) if (client.isOpen && !client.isReady) return true;
  return false;
}

/** ms for which nothing has disturbed the process. */
export function quietFor({ timeline }: World, host: Host): number {
  return timeline.now - host.lastDisturbed;
}
