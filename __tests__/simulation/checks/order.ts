import { isKept } from '../../../lib/protocols/min-hold/kept';
import type { ProcessPlan } from '../plan';
import type { ScriptRun } from '../server/redis-server';
import { type Host, hostOf, lockName, ownerOf, quietFor, type World } from '../world';
import type { CallChecks } from './calls';

/** ms without a disturbance after which a process may not be passed over any more. */
const QUIET = 3_000;

/** The order of arrival of `fair`: checked after each script, in what the scripts keep in Redis. */
export class OrderChecks {
  readonly #world: World;
  /** Of each lock: its owner, and when each ticket was first seen in the queue. */
  readonly #owner = new Map<string, string | undefined>();
  readonly #arrivals = new Map<string, { readonly position: number; readonly time: number }>();
  readonly #calls: CallChecks;
  #count = 0;

  constructor(world: World, calls: CallChecks) {
    this.#world = world;
    this.#calls = calls;
  }

  ran({ keys: [lock = ''] }: ScriptRun): void {
    const { server, plan, timeline } = this.#world;
    if (plan.lockType !== 'fair') return;
    const queue = `{${lock}}:queue`;
    if (server.keys.kind(queue) === 'zset') {
      for (const ticket of server.keys.get(queue, 'zset')?.keys() ?? []) {
        if (!this.#arrivals.has(ticket)) this.#arrivals.set(ticket, { position: ++this.#count, time: timeline.now });
      }
    }
    const owner = ownerOf(server, lock);
    if (owner !== undefined && !isKept(owner) && owner !== this.#owner.get(lock))
      this.#checkOvertaking(lock, queue, owner);
    this.#owner.set(lock, owner);
  }

  #checkOvertaking(lock: string, queue: string, owner: string): void {
    const { server, violations, plan } = this.#world;
    if (!plan.callers.some(({ key }) => lockName(key) === lock)) return;
    const arrival = this.#arrivals.get(owner.split('@')[0] ?? '')?.position ?? Number.POSITIVE_INFINITY;
    const waiting = server.keys.kind(queue) === 'zset' ? server.keys.get(queue, 'zset')?.keys() : undefined;
    for (const ticket of waiting ?? []) {
      const host = hostOf(this.#world, ticket);
      const arrived = this.#arrivals.get(ticket);
      if (arrived === undefined || arrived.position >= arrival || !host?.process.isAlive || host.closing !== 'no')
        continue;
      // Nobody may wait with this ticket any more: it was left behind.
      if (this.#maySleepThrough(host, lock)) continue;
      if (quietFor(this.#world, host) < QUIET || !this.#calls.isWaiting(host, lock, arrived.time)) continue;
      violations.report('overtaken', lock, `${owner} got ${lock} before ${ticket}, which came earlier`);
    }
  }

  /** It polls, and a grant to one of its callers may run out between two polls: the process counts as absent then. */
  #maySleepThrough(host: Host, lock: string): boolean {
    const { connections, givesSubscriber } = this.#world.plan.processes[host.index] as ProcessPlan;
    if (connections === 1 || givesSubscriber) return false;
    const asked = this.#world.plan.callers.filter(
      ({ process, key }) => process === host.index && lockName(key) === lock,
    );
    const { idleBetweenTries = 100 } = host.registryOptions;
    return asked.some(({ rounds }) => rounds.some(({ ttl }) => ttl !== undefined && ttl < 2 * idleBetweenTries));
  }
}
