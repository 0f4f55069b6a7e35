import { traitsOf } from '../../../lib/api/lock-types';
import { isShared } from '../plan';
import { type Host, hostOf, lockName, ownersOf, quietFor, type World } from '../world';
import type { PendingCall } from './calls';
import type { LeaseChecks } from './leases';

/** What a waiter has after so many ms, where nothing has disturbed its process for longer than `quiet`. */
interface Bound {
  readonly quiet: number;
  readonly within: number;
}

/** Whose place is lost has another one by its next poll but one. */
const PLACE: Bound = { quiet: 200, within: 2_500 };

/** A process that cannot listen tries again after 10 s. */
const SUBSCRIPTION: Bound = { quiet: 11_500, within: 1_500 };

/** Where the places of waiters are, by lock type. The other types have none. */
const QUEUES: Readonly<Record<string, (lock: string) => string>> = {
  fair: (lock) => `{${lock}}:queue`,
  'redisson-fair': (lock) => `redisson_lock_queue:{${lock}}`,
  semaphore: (lock) => `{${lock}}:waiters`,
  'read-write': (lock) => `{${lock}}:waiters`,
};

/** What a process has in Redis while it waits for another one: a place in the queue, and a subscription. */
export class WaiterChecks {
  readonly #world: World;
  readonly #leases: LeaseChecks;
  /** By process and key. */
  readonly #unplacedSince = new Map<string, number>();
  readonly #deafSince = new Map<string, number>();

  constructor(world: World, leases: LeaseChecks) {
    this.#world = world;
    this.#leases = leases;
  }

  /** Now and then. */
  check(pending: Iterable<PendingCall>): void {
    const waiting = new Map<string, readonly [Host, string]>();
    for (const { host, keys, waitTime } of pending) {
      const [key = ''] = keys;
      // A lock of several keys waits for one of them.
      if (keys.length === 1 && waitTime > 0) waiting.set(`${host.index} ${key}`, [host, key]);
    }
    for (const since of [this.#unplacedSince, this.#deafSince])
      for (const id of since.keys()) if (!waiting.has(id)) since.delete(id);
    for (const [id, [host, key]] of waiting) {
      const text = `${host.process.name} waits for "${key}"`;
      this.#expect(this.#unplacedSince, id, host, PLACE, this.#hasPlace(host, key), `${text} without a place`);
      this.#expect(this.#deafSince, id, host, SUBSCRIPTION, this.#listens(host, key), `${text} and does not listen`);
    }
  }

  #expect(
    since: Map<string, number>,
    id: string,
    host: Host,
    { quiet, within }: Bound,
    isSo: boolean,
    text: string,
  ): void {
    const { timeline, violations } = this.#world;
    const isExcused = !host.process.isAlive || host.closing !== 'no' || quietFor(this.#world, host) < quiet;
    if (isSo || isExcused) since.delete(id);
    else if (!since.has(id)) since.set(id, timeline.now);
    else if (timeline.now - (since.get(id) ?? 0) > within) violations.report('not waiting', id, text);
  }

  #hasPlace(host: Host, key: string): boolean {
    const { plan, server } = this.#world;
    const queue = QUEUES[isShared(plan.lockType) ? plan.lockType : (host.registryOptions.lockType ?? '')]?.(
      lockName(key),
    );
    if (queue === undefined || this.#hasIt(host, key)) return true;
    const kind = server.keys.kind(queue);
    const texts = kind === undefined ? [] : [...(server.keys.get(queue, kind) as Iterable<string | [string, unknown]>)];
    return texts.some((one) => hostOf(this.#world, ticketOf(one)) === host);
  }

  #listens(host: Host, key: string): boolean {
    const { plan } = this.#world;
    const traits = plan.processes[host.index];
    const { lockType } = host.registryOptions;
    const polls = lockType !== undefined && traitsOf(lockType).polls && !isShared(plan.lockType);
    const hasPubSub = traits?.connections === 1 || traits?.givesSubscriber;
    if (polls || !hasPubSub || this.#hasIt(host, key)) return true;
    return [...host.directory.clients].some(({ connection }) =>
      [...(connection?.channels ?? [])].some((channel) => channel.includes(lockName(key))),
    );
  }

  /** Its next caller waits for a caller of its own. */
  #hasIt(host: Host, key: string): boolean {
    const { server, timeline } = this.#world;
    const owners = ownersOf(server, lockName(key));
    return (
      owners.some((owner) => hostOf(this.#world, owner) === host) ||
      this.#leases.lastHeld(host, key) > timeline.now - 200
    );
  }
}

function ticketOf(one: string | [string, unknown]): string {
  return (typeof one === 'string' ? one : one[0]).replace(/^(semaphore|read|write):/, '');
}
