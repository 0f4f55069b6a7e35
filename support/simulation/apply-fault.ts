import type { LeaseChecks } from './checks/leases';
import { checkLeftovers } from './checks/leftovers';
import type { Connection, CutMode } from './client/connection';
import type { SimulatedClient } from './client/simulated-client';
import { describeRun } from './describe-run';
import { lockOf } from './host';
import { keysOf } from './plan';
import type { Fault, Target } from './plan-faults';
import { SlotMove } from './server/slot-move';
import { type Host, lockName, quietFor, RECOVERY, type World } from './world';

/** What is kept beside a lock, but for marks that tell commands which are repeated. */
const COMPANION = /(^\{.*\}:(fence|queue|tickets|waiters)$)|^redisson_lock_(queue|timeout|token):/;

/** ms after a disturbance in which a command may still be on its way. */
const RECENTLY = 3_500;

/** Makes a planned fault happen, and notes for how long it disturbs whom. */
export function applyFault(world: World, leases: LeaseChecks, fault: Fault): void {
  const { history, server, timeline, hosts } = world;
  history.note('FAULT', () => describe(fault));
  switch (fault.kind) {
    case 'restart':
      server.stop({ losesData: fault.losesData });
      if (fault.losesData) leases.excuse(keysOf(world.plan), true);
      disturb(world, hosts, fault.duration + RECOVERY);
      for (const host of hosts) {
        for (const client of host.directory.clients) client.connection?.serverStopped();
      }
      timeline.after(fault.duration, () => {
        server.isUp = true;
        history.note('server', () => 'is up again');
      });
      return;
    case 'freeze':
      server.inbox.freeze(fault.duration);
      disturb(world, hosts, fault.duration + RECOVERY);
      return;
    case 'replace':
      replace(world, leases, fault);
      return;
    case 'slot move':
      moveSlot(world, fault);
      return;
    case 'flush scripts':
      server.flushScripts();
      return;
    case 'server clock':
      server.setBack(fault.ms);
      return;
    case 'delete':
      leases.excuse([fault.key], false);
      server.keys.delete(lockName(fault.key));
      return;
    case 'delete companion':
      deleteCompanion(world, leases, fault.key, fault.which);
      return;
    default:
      applyToProcess(world, leases, fault, hosts[fault.process] as Host);
  }
}

function applyToProcess(
  world: World,
  leases: LeaseChecks,
  fault: Extract<Fault, { process: number }>,
  host: Host,
): void {
  const { timeline } = world;
  const { process } = host;
  if (!process.isAlive) return;
  switch (fault.kind) {
    case 'cut':
      disturb(world, [host], RECOVERY);
      for (const client of targets(host, fault.target)) client.connection?.cut(fault.mode);
      return;
    case 'slow':
      disturb(world, [host], fault.duration + fault.extra + RECOVERY);
      slowDown(world, fault, targets(host, fault.target));
      return;
    case 'hold':
      disturb(world, [host], fault.duration + RECOVERY);
      for (const { connection } of targets(host, fault.target)) {
        connection?.up.holdUntil(timeline.now + fault.duration);
        connection?.down.holdUntil(timeline.now + fault.duration);
      }
      return;
    case 'pause':
    case 'suspend':
      disturb(world, [host], fault.duration + RECOVERY, fault.kind === 'pause');
      process.pause(fault.duration, fault.kind === 'suspend');
      return;
    case 'kill':
      process.kill();
      for (const client of host.directory.clients) killed(world, client, fault.isSilent);
      return;
    case 'wall clock':
      disturb(world, [host], RECOVERY);
      process.stepWallClock(fault.step);
      return;
    case 'evict':
      process.post('task', () => host.registry.expireUnusedOlderThan(-1));
      return;
    case 'force':
      process.post('task', () => void force(world, host, fault.key));
      return;
    case 'close':
      process.post('task', () => void close(world, leases, host, fault.timeout));
      return;
    case 'reopen':
      reopen(world, host, fault);
      return;
    case 'half open':
      halfOpen(world, host, fault);
      return;
    case 'refuse':
      host.refusal = { ...fault, from: timeline.now, until: timeline.now + fault.duration };
  }
}

/** ms in which a server that has woken up learns that it was replaced: it answers as before until then. */
const LEARNS = 100;

/** ms without an answer after which a process asks once more. */
const LONG_SILENCE = 520;

function replace(
  world: World,
  leases: LeaseChecks,
  { duration, promotion, early }: Extract<Fault, { kind: 'replace' }>,
): void {
  const { server, timeline, hosts, history } = world;
  // What it has granted before is on the next one too, but it may prolong, or end, leases that the next one gives away.
  leases.excuse(keysOf(world.plan), false);
  // Before it executes what has arrived.
  timeline.after(duration, () => {
    for (const host of hosts) host.isUnaware = timeline.now - (host.unansweredSince ?? timeline.now) <= LONG_SILENCE;
  });
  const old = server.replaced((run) => history.note('old server', () => describeRun(run, hosts, [])));
  old.inbox.take(server.inbox);
  old.inbox.freeze(duration);
  server.isUp = false;
  timeline.after(promotion, () => (server.isUp = true));
  disturb(world, hosts, duration + LEARNS + RECOVERY);
  for (const host of hosts) {
    const clients = [...host.directory.clients];
    const connections = clients.flatMap(({ connection }) => (connection === undefined ? [] : [connection]));
    for (const connection of connections) connection.stayWith(old);
    const cut = (): void => {
      for (const connection of connections) connection.cut('executed');
    };
    timeline.after(duration + LEARNS + RECOVERY, () => learns(world, host));
    const isEarly = early.includes(host.index);
    timeline.after(isEarly ? promotion : duration + host.moments.between(0, LEARNS), cut);
  }
}

/** The old server is silent for good. What it has granted may still lie there, to be read after a block. */
function learns(world: World, host: Host): void {
  const { isPaused, pausedUntil } = host.process;
  host.isUnaware &&= isPaused && pausedUntil - (host.unansweredSince ?? host.lastReply) <= LONG_SILENCE;
  if (host.isUnaware) world.timeline.at(pausedUntil + RECOVERY, () => learns(world, host));
}

function deleteCompanion(world: World, leases: LeaseChecks, key: string, which: number): void {
  const { server, history, lostCompanions, timeline } = world;
  const lock = lockName(key);
  const companions = server.keys.keys().filter((name) => COMPANION.test(name) && name.includes(`{${lock}}`));
  const name = companions[Math.floor(which * companions.length)];
  if (name === undefined) return;
  history.note('FAULT', () => `${name} is deleted`);
  lostCompanions.set(lock, timeline.now);
  leases.excuseTokens(key);
  world.permits.lost();
  server.keys.delete(name);
}

/** The application loses its client, and connects it again when Redis can be reached. */
function reopen(world: World, host: Host, { how, duration }: Extract<Fault, { kind: 'reopen' }>): void {
  const { timeline } = world;
  const { client, directory, process, moments } = host;
  disturb(world, [host], duration + RECOVERY);
  if (how !== 'destroy') {
    const tries = how === 'give up' ? moments.whole(0, 4) : Number.POSITIVE_INFINITY;
    directory.outage = { until: timeline.now + duration, tries };
    for (const { connection } of directory.clients) connection?.cut('executed');
  }
  const destroy = (): void => process.post('task', () => client.isOpen && client.destroy());
  if (how !== 'give up') timeline.after(how === 'destroy' ? 0 : Math.min(100, duration / 2), destroy);
  timeline.after(duration, () =>
    process.post('task', () => {
      if (client.isOpen || host.closing === 'closed') return;
      host.counts.reopened++;
      client.connect().catch(() => undefined);
    }),
  );
}

/** A silent end (the machine lost its power): the server does not notice for a while. */
function killed({ timeline }: World, client: SimulatedClient, isSilent: boolean): void {
  const { connection } = client;
  if (isSilent) timeline.after(20_000, () => connection?.cut('executed', false));
  else connection?.cut('executed', false);
}

function slowDown(world: World, fault: Extract<Fault, { kind: 'slow' }>, clients: readonly SimulatedClient[]): void {
  for (const { connection } of clients) {
    const directions = [
      ...(fault.direction === 'down' ? [] : [connection?.up]),
      ...(fault.direction === 'up' ? [] : [connection?.down]),
    ];
    for (const direction of directions) if (direction !== undefined) direction.extra += fault.extra;
    world.timeline.after(fault.duration, () => {
      for (const direction of directions) if (direction !== undefined) direction.extra -= fault.extra;
      if (fault.endsWith !== undefined) connection?.cut(fault.endsWith);
    });
  }
}

/** As README says: `close()`, and then the client is destroyed. */
export async function close(world: World, leases: LeaseChecks, host: Host, timeout: number): Promise<void> {
  if (host.closing !== 'no') return;
  const { timeline } = world;
  const startedAt = timeline.now;
  host.closing = 'closing';
  world.history.note(host.process.name, () => `closes its registry, timeout ${timeout} ms`);
  await host.registry.close({ timeout });
  // A key is never deleted under a running task, nor under one from which it was taken: it is left to expire.
  for (const lock of leases.replacements.awaitedBy(host)) host.leftByClose.add(lock);
  for (const open of leases.open) if (open.host === host) host.leftByClose.add(lockName(open.key));
  host.closing = 'closed';
  host.closedInTrouble = quietFor(world, host) <= RECENTLY + timeline.now - startedAt;
  checkLeftovers(world, 'when its registry was closed', host);
  // What was on its way then has come to the server.
  timeline.after(RECOVERY, () => checkLeftovers(world, 'after its registry was closed', host));
  world.history.note(host.process.name, () => 'has closed its registry, and destroys its client');
  if (host.client.isOpen) host.client.destroy();
  host.whenClosed();
}

async function force(world: World, host: Host, key: string): Promise<void> {
  const { lockType } = world.plan;
  const kind = lockType === 'semaphore' ? 'semaphore' : lockType === 'read-write' ? 'write' : undefined;
  // What it has, so that this call changes nothing.
  const permits = world.permits.numbers(key).at(-1) ?? 1;
  if (kind === 'semaphore') world.permits.given(host, key, permits);
  try {
    const { owner } = await lockOf(host, [key], { kind, permits }, lockType).forceUnlock();
    world.history.note(host.process.name, () => `unlocked "${key}" by force, which ${owner ?? 'nobody'} had`);
  } catch (error) {
    world.history.note(host.process.name, () => String(error));
  }
}

/** Only what proves it can find that: it disturbs nobody, but for the end. */
function halfOpen(world: World, host: Host, fault: Extract<Fault, { kind: 'half open' }>): void {
  const { timeline } = world;
  const { isCounted, hears, answers, duration } = fault;
  const connections = targets(host, 'subscriber').flatMap(({ connection }) => connection ?? []);
  if (answers) host.directory.hearing = { isCounted, hears };
  host.isUncounted = !isCounted;
  for (const connection of connections) {
    connection.hearing = { isCounted, hears };
    if (answers) continue;
    connection.up.holdUntil(timeline.now + duration);
    connection.down.holdUntil(timeline.now + duration);
  }
  timeline.after(duration, () => {
    host.directory.hearing = undefined;
    host.isUncounted = false;
    const since = answers ? targets(host, 'subscriber').flatMap(({ connection }) => connection ?? []) : connections;
    disturb(world, [host], RECOVERY);
    for (const connection of since) connection.cut('lost');
  });
}

/** ms in which clients learn that the slot has moved. */
const LEARNS_MOVE = 20;

function moveSlot(world: World, { pause, text }: Extract<Fault, { kind: 'slot move' }>): void {
  const { server, timeline, hosts, history } = world;
  if (server.move !== undefined) return;
  const move = new SlotMove(server.keys, text);
  server.move = move;
  const step = (): void => {
    disturb(world, hosts, pause + LEARNS_MOVE + RECOVERY);
    timeline.after(pause, () => {
      if (move.moveNext()) {
        step();
        return;
      }
      move.isOver = true;
      history.note('server', () => 'all keys have moved');
      timeline.after(LEARNS_MOVE, () => (server.move = undefined));
    });
  };
  step();
}

/** Its reply is lost. */
export function cutOff(world: World, host: Host, connection: Connection, mode: CutMode = 'executed'): void {
  disturb(world, [host], RECOVERY);
  world.timeline.after(0, () => connection.cut(mode));
}

function targets({ directory }: Host, target: Target): SimulatedClient[] {
  return [...directory.clients].filter(
    ({ isSubscriber }) => target === 'all' || isSubscriber === (target === 'subscriber'),
  );
}

function disturb({ timeline }: World, hosts: readonly Host[], ms: number, isPause = false): void {
  for (const host of hosts) {
    host.disturbedUntil = Math.max(host.disturbedUntil, timeline.now + ms);
    if (!isPause) host.cutOffUntil = Math.max(host.cutOffUntil, timeline.now + ms);
  }
}

function describe({ at: _at, kind, ...details }: Fault): string {
  const given = Object.entries(details).filter(([, value]) => value !== undefined);
  return [
    kind,
    ...given.map(([name, value]) => `${name} ${typeof value === 'number' ? Math.round(value) : value}`),
  ].join(', ');
}
