import type { RedisLockRegistry } from '../../lib';
import type { SharedKind } from '../../lib/api/lock-types';
import { isOfLibrary } from '../../lib/api/owner-name';
import { LEARNS_REPLACEMENT } from '../../lib/redis/silence-times';
import type { Random } from '../random';
import type { PermitChecks } from './checks/permits';
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
  /** What is in the maps and sets of its registry. */
  readonly entries: () => number;
  /** So far: commands of the library, calls of its callers, connections of the library's own, reopenings of its client. */
  readonly counts: { commands: number; calls: number; connections: number; reopened: number };
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
  /** The same without pauses of the process. */
  cutOffUntil: number;
  /** When something else than a pause was last seen wrong; -Infinity: never. */
  lastCutOff: number;
  /** What the server answers it in place of a reply, and when. */
  refusal: Refusal | undefined;
  /** When it was last seen disturbed, but for answers that refuse; -Infinity: never. */
  lastDelayed: number;
  /** Decides about faults that happen just when it does something. */
  readonly moments: Random;
  /** When it was last seen disturbed; -Infinity: never. */
  lastDisturbed: number;
  /** When a reply of a command was last read. */
  lastReply: number;
  /** When it last read that the server does not know a script: it sends the command once more. */
  lastUnknown: number;
  /** When it wrote the first command that is unanswered; `undefined`: none is. */
  unansweredSince: number | undefined;
  /** A server that was replaced answers it, and nothing was unanswered for so long that it could tell. */
  isUnaware: boolean;
  /** When its last pause ended; now, in a pause; -Infinity: it had none. */
  lastPaused: number;
  /** The arguments of commands that came to the server after their connection was lost, and how many ms after they were sent. */
  readonly cameLate: Map<string, number>;
  /** The server does not count it as a listener, and it has not found that out: nothing is granted to it meanwhile. */
  isUncounted: boolean;
  /** Messages that did not come over connections that only looked alive. */
  readonly unheard: Set<string>;
  readonly registryOptions: ProcessPlan['options'];
}

interface Refusal {
  readonly error: string;
  readonly command: 'EVAL' | 'SUBSCRIBE';
  readonly from: number;
  readonly until: number;
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
  readonly permits: PermitChecks;
  /** By lock: when a key beside its own was last deleted. */
  readonly lostCompanions: Map<string, number>;
}

/** ms that a process needs after a fault until its connections are as before. */
export const RECOVERY = 100;

/**
 * ms in which the library follows up what had an unknown outcome, once Redis can be reached: it removes it within 1 s,
 * 1 s later, and 10 s later.
 */
export const FOLLOW_UP = 13_000;

export const REGISTRY_KEY = 'r';

export function lockName(key: string): string {
  return `${REGISTRY_KEY}:${key}`;
}

/** Who has the lock in Redis: the owner value; `undefined`: nobody, or it is a shared lock. */
export function ownerOf(server: RedisServer, lock: string): string | undefined {
  const kind = server.keys.kind(lock);
  if (kind === 'string') return server.keys.get(lock, 'string');
  if (kind !== 'hash') return undefined;
  // Its field with Redisson; another kind may have it as a value.
  return [...(server.keys.get(lock, 'hash') ?? [])].flat().find((text) => isOfLibrary(text));
}

/** A lease of a shared lock in Redis: it is one of several members of the lock. */
export interface Member {
  readonly member: string;
  readonly kind: SharedKind;
  readonly owner: string;
  /** How many permits it has. */
  readonly takes: number;
  /** ms */
  readonly life: number;
}

/** The leases of a shared lock that have not ended. */
export function membersOf(server: RedisServer, lock: string): Member[] {
  if (server.keys.kind(lock) !== 'zset') return [];
  return [...(server.keys.get(lock, 'zset') ?? [])].flatMap(([member, end]) => {
    const colon = member.indexOf(':');
    const life = end - server.time;
    if (life <= 0) return [];
    const owner = member.slice(colon + 1);
    return [{ member, kind: member.slice(0, colon) as SharedKind, owner, takes: takenBy(member), life }];
  });
}

/** How many permits a member, or a ticket, has or asks for. */
export function takenBy(member: string): number {
  return Number(/\*(\d+)$/.exec(member)?.[1] ?? 1);
}

export function sumOf(some: readonly { readonly takes: number }[]): number {
  return some.reduce((sum, { takes }) => sum + takes, 0);
}

/** The owner values that have the lock in Redis: at most one, but for shared locks. */
export function ownersOf(server: RedisServer, lock: string): string[] {
  if (server.keys.kind(lock) === 'zset') return membersOf(server, lock).map(({ owner }) => owner);
  const owner = ownerOf(server, lock);
  return owner === undefined ? [] : [owner];
}

/** ms for which the owner still has the lock in Redis; 0: it does not have it. */
export function lifeOf(server: RedisServer, lock: string, owner: string): number {
  if (server.keys.kind(lock) === 'zset') {
    return membersOf(server, lock).find((one) => one.owner === owner)?.life ?? 0;
  }
  return ownerOf(server, lock) === owner ? (server.keys.expiresAt(lock) ?? 0) - server.time : 0;
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
export function isDisturbed(world: World, host: Host): boolean {
  return isDelayed(world, host) || isCutOff(world, host);
}

/** Answers may be late, or not come. */
export function isDelayed(world: World, host: Host): boolean {
  return world.timeline.now < host.disturbedUntil || host.process.isPaused || isAway(world, host);
}

/** The same, and not only because the process is paused. */
export function isCutOff(world: World, host: Host): boolean {
  return world.timeline.now < (host.refusal?.until ?? Number.NEGATIVE_INFINITY) + RECOVERY || isAway(world, host);
}

function isAway({ timeline, server, network }: World, host: Host): boolean {
  if (timeline.now < host.cutOffUntil || host.process.isSuspended || !server.isUp) return true;
  if (server.inbox.isFrozen || network.replicas.areInTrouble) return true;
  if (!host.client.isOpen && host.closing === 'no') return true;
  for (const client of host.directory.clients) if (client.isOpen && !client.isReady) return true;
  return false;
}

/** ms for which nothing has disturbed the process. It may have been blocked in this very event. */
export function quietFor({ timeline }: Pick<World, 'timeline'>, host: Host): number {
  return host.process.isPaused ? 0 : timeline.now - host.lastDisturbed;
}

/**
 * Its event loop was blocked while what it asks was to be written, or answered; or just before, so that its grant is
 * requested once more.
 */
export function isBlockedSince({ lastPaused }: Host, startedAt: number): boolean {
  return lastPaused >= startedAt - LEARNS_REPLACEMENT;
}

/**
 * ms for which nothing but an answer that no attempt can mend could come to what began then; 0: that may be otherwise.
 */
export function refusedFor({ timeline }: World, { refusal, lastDelayed }: Host, since: number): number {
  if (refusal === undefined || refusal.command !== 'EVAL' || !/^(NOPERM|NOAUTH|OOM)/.test(refusal.error)) return 0;
  return timeline.now < refusal.until ? timeline.now - Math.max(since, refusal.from, lastDelayed) : 0;
}
