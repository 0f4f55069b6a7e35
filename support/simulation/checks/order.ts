import { holderOf, isDetached, isKept } from '../../../lib/api/owner-name';
import { ACQUIRE, RELEASE } from '../../../lib/kinds/fair/scripts';
import { keysOf } from '../plan';
import type { ScriptRun } from '../server/redis-server';
import { type Host, hostOf, lockName, ownerOf, quietFor, type World } from '../world';
import type { CallChecks } from './calls';
import type { LeaseChecks } from './leases';

/** ms; a round trip, and what the loop of a process may be busy with. Calls that are closer to each other have no order. */
const CLOSE = 50;

/** The same where nothing is slow: a message. */
const AT_ONCE = 5;

/** ms without a disturbance after which a process may not be passed over any more. */
const QUIET = 3_000;

/** The ticket of a caller that waits, in the arguments of a script. */
const TICKET_IN = new Map([
  [ACQUIRE.name, ([ticket]: readonly string[]) => ticket],
  [RELEASE.name, ([, , text]: readonly string[]) => text?.split(' ')[6]],
]);

/** The order of the calls for a `fair` lock: checked after each script, in what the scripts keep in Redis. */
export class OrderChecks {
  readonly #world: World;
  /** By lock: its key. */
  readonly #keys: ReadonlyMap<string, string>;
  /** The owner of each lock. */
  readonly #owner = new Map<string, string | undefined>();
  /** When the caller of each ticket called. */
  readonly #called = new Map<string, number>();
  /** When a script first had it. */
  readonly #entered = new Map<string, number>();
  /** By process and lock: when its lease was detached, until the caller behind that has sent a ticket. */
  readonly #detached = new Map<string, number>();
  readonly #calls: CallChecks;
  readonly #leases: LeaseChecks;
  /** Their names. */
  readonly #scripts: ReadonlyMap<string, string>;

  constructor(world: World, calls: CallChecks, leases: LeaseChecks, scripts: ReadonlyMap<string, string>) {
    this.#world = world;
    this.#keys = new Map(keysOf(world.plan).map((key) => [lockName(key), key]));
    this.#calls = calls;
    this.#leases = leases;
    this.#scripts = scripts;
  }

  ran({ source, keys: [lock = ''], args }: ScriptRun): void {
    const { server, plan, timeline } = this.#world;
    if (plan.lockType !== 'fair') return;
    const asking = hostOf(this.#world, args[0]);
    if (asking !== undefined && args.some((text) => text.includes(' poll '))) asking.isUncounted = false;
    const ticket = TICKET_IN.get(this.#scripts.get(source) ?? '')?.(args) ?? '';
    const from = hostOf(this.#world, ticket);
    if (from !== undefined) this.#detached.delete(`${from.index}/${lock}`);
    if (from !== undefined && !this.#called.has(ticket)) {
      this.#entered.set(ticket, timeline.now);
      // The first caller of a process contends for all. A script that was delayed may be that of one that has left.
      const isFirst = quietFor(this.#world, from) >= QUIET;
      // Its time may have ended while the script was on its way: the script is for it, and not for the caller behind it.
      const called = isFirst ? this.#calls.firstCall(from, lock, { late: CLOSE }) : undefined;
      this.#called.set(ticket, called ?? Number.NEGATIVE_INFINITY);
    }
    const owner = ownerOf(server, lock);
    if (owner !== undefined && !isKept(owner) && owner !== this.#owner.get(lock)) this.#checkOvertaking(lock, owner);
    if (owner !== undefined && isDetached(owner) && owner !== this.#owner.get(lock)) {
      this.#detached.set(`${hostOf(this.#world, holderOf(owner))?.index}/${lock}`, timeline.now);
    }
    this.#owner.set(lock, owner);
  }

  #checkOvertaking(lock: string, owner: string): void {
    const { hosts, violations } = this.#world;
    if (!this.#keys.has(lock)) return;
    const entering = hostOf(this.#world, owner);
    const called = this.#called.get(owner.split('@')[0] ?? '');
    // Positions are times of the server: those of callers from before its clock had caught up have no order.
    if (called === undefined || this.#world.server.wasSetBackAt(called)) return;
    // Where the notes about its process were deleted, a ticket counts as that of a dead one until its process polls.
    if (this.#world.timeline.now - (this.#world.lostCompanions.get(lock) ?? Number.NEGATIVE_INFINITY) < QUIET) return;
    for (const host of hosts) {
      if (host === entering || !host.process.isAlive || host.closing !== 'no' || host.isUncounted) continue;
      if (this.#maySleepThrough(host, lock) || this.#wasDelayed(host, lock)) continue;
      if (this.#isBehindLostKey(host, lock) || this.#isBehindDetached(host, lock)) continue;
      const first = this.#calls.firstCall(host, lock);
      // A call is as old as the monotonic clock of its process says, which stands still while the machine is suspended.
      const behind = CLOSE + host.process.suspended;
      if (first === undefined || first + behind >= called || quietFor(this.#world, host) < QUIET) continue;
      violations.report(
        'overtaken',
        lock,
        `${owner} got ${lock} before a caller of ${host.process.name} that called earlier`,
      );
    }
  }

  /** Without a script: a message says that a process has a ticket. */
  passedOn(to: Host, lock: string, called: number, caller: string): void {
    const { plan, timeline, violations } = this.#world;
    if (plan.lockType !== 'fair' || quietFor(this.#world, to) < QUIET || this.#world.server.wasSetBackAt(called))
      return;
    const close = plan.isCalm ? AT_ONCE : CLOSE;
    for (const ticket of this.#queue(lock)) {
      const host = hostOf(this.#world, ticket);
      if (host === undefined || host === to || !host.process.isAlive || quietFor(this.#world, host) < QUIET) continue;
      const isKnown = (this.#entered.get(ticket) ?? timeline.now) + close < timeline.now;
      if (!isKnown || (this.#called.get(ticket) ?? timeline.now) + close >= called) continue;
      violations.report('overtaken', lock, `${lock} was passed on to ${caller} before ${ticket}, which called earlier`);
    }
  }

  #queue(lock: string): string[] {
    const { keys } = this.#world.server;
    const queue = `{${lock}}:queue`;
    return keys.kind(queue) === 'zset' ? [...(keys.get(queue, 'zset')?.keys() ?? [])] : [];
  }

  /** The script that gave its ticket a position was disturbed on its way: the position may be later than the call. */
  #wasDelayed(host: Host, lock: string): boolean {
    return this.#queue(lock).some(
      (ticket) => hostOf(this.#world, ticket) === host && this.#called.get(ticket) === Number.NEGATIVE_INFINITY,
    );
  }

  /** Its holder does not know yet that its key was deleted: the callers behind it have no ticket meanwhile. */
  #isBehindLostKey(host: Host, lock: string): boolean {
    return this.#world.timeline.now - this.#leases.lastExcused(host, this.#keys.get(lock) ?? '') < QUIET;
  }

  /** The caller behind a lease that travels has a ticket after the answer: a round trip later. */
  #isBehindDetached(host: Host, lock: string): boolean {
    const detachedAt = this.#detached.get(`${host.index}/${lock}`) ?? Number.NEGATIVE_INFINITY;
    return this.#world.timeline.now - detachedAt < CLOSE;
  }

  /** While messages do not reach it, it polls, and a short grant to one of its callers may run out between two polls. */
  #maySleepThrough(host: Host, lock: string): boolean {
    const asked = this.#world.plan.callers.filter(
      ({ process, keys }) => process === host.index && keys.some((key) => lockName(key) === lock),
    );
    const { idleBetweenTries = 100 } = host.registryOptions;
    return asked.some(({ rounds }) => rounds.some(({ ttl }) => ttl !== undefined && ttl < 2 * idleBetweenTries));
  }
}
