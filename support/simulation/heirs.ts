import type { Lease } from '../../lib';
import { DETACHED } from '../../lib/api/owner-name';
import type { Grants } from './checks/grants';
import type { LeaseChecks, OwnedLease } from './checks/leases';
import type { Round } from './plan';
import { type Host, lockName, type World } from './world';

/** ms between two tries to adopt. */
const TRY_AGAIN = 30;

/** A lease that a caller has detached. */
interface Journey {
  readonly text: string;
  readonly key: string;
  /** The owner value that it had, and the one that it has until somebody adopts it. */
  readonly owner: string;
  readonly caller: string;
  readonly round: Round;
  readonly ttl: number;
  /** When it was about to be detached. */
  readonly since: number;
  /** How many have adopted it. */
  heirs: number;
}

/** Tasks of other processes that go on with leases. */
export class Heirs {
  readonly #world: World;
  readonly #leases: LeaseChecks;
  readonly #grants: Grants;

  constructor(world: World, leases: LeaseChecks, grants: Grants) {
    this.#world = world;
    this.#leases = leases;
    this.#grants = grants;
  }

  /** The caller has the text of its lease, and was about to detach it then. */
  follow(text: string, lease: Lease, caller: string, round: Round, since: number): void {
    const { timeline, hosts, violations } = this.#world;
    const { key, owner, ttl } = lease as OwnedLease;
    const journey: Journey = { text, key, owner, caller, round, ttl, since, heirs: 0 };
    const told = (): void => {
      violations.report(
        'lost on the way',
        key,
        `${caller} is told that its lease of "${key}" is lost, which it has detached`,
      );
    };
    if (lease.signal.aborted) told();
    lease.signal.addEventListener('abort', told);
    for (const [i, to] of (round.travels?.to ?? []).entries()) {
      const host = hosts[to];
      const adopt = () =>
        host?.process.post('task', () => void this.#adopt(journey, host, `${caller}'s heir ${i + 1}`));
      timeline.after(round.travels?.after ?? 0, adopt);
    }
  }

  async #adopt(journey: Journey, host: Host, name: string): Promise<void> {
    const { history, timeline, violations } = this.#world;
    const { text, key, round, ttl, since } = journey;
    const note = (said: string): void => history.note(`${host.process.name} ${name}`, () => said);
    for (;;) {
      note(`adopts "${key}"`);
      try {
        const lease = (await host.registry.adopt(text)) as OwnedLease;
        // A server that was replaced gives it too to a process that cannot know that yet: the second holder after a failover.
        if (!host.isUnaware && ++journey.heirs > 1)
          violations.report('two holders', key, `the lease of ${journey.caller} was adopted twice`);
        const { kind, permits, takes } = round;
        const open = this.#leases.opened(lease, host, key, name, { ...round, kind, permits, takes });
        note(`has "${key}" for ${lease.remaining.toFixed(1)} ms`);
        await this.#sleep(host, round.travels?.hold ?? 0);
        await lease.unlock().catch((error) => note(String(error)));
        note(`unlocked "${key}"`);
        this.#leases.closed(open);
        return;
      } catch (error) {
        note(String(error));
        const { name: kind } = error as Error;
        if (kind === 'LockLostError') this.#checkLost(journey, host, name);
        else if (kind !== 'CannotAcquireLockError' && kind !== 'RegistryClosedError')
          violations.report('strange error', name, (error as Error).stack ?? String(error));
        if (kind !== 'CannotAcquireLockError' || timeline.now - since > ttl) return;
        await this.#sleep(host, TRY_AGAIN);
      }
    }
  }

  /** Within its time, only another heir, or a fault of Redis, can have it. */
  #checkLost({ key, owner, caller, ttl, since, round, heirs }: Journey, host: Host, name: string): void {
    const { timeline, violations, server, plan } = this.#world;
    const isOver = timeline.now - since > 0.9 * ttl - (plan.isCalm ? 0 : 50);
    if (isOver || heirs > 0 || (round.travels?.to.length ?? 0) > 1 || server.isSetBack || host.isUnaware) return;
    if (this.#grants.lostAt(lockName(key), DETACHED + owner) !== undefined) return;
    const text = `${name} cannot adopt "${key}", which ${caller} detached ${(timeline.now - since).toFixed(0)} ms ago`;
    violations.report('lost on the way', key, text);
  }

  #sleep(host: Host, ms: number): Promise<void> {
    return new Promise((resolve) => {
      host.process.setTimeout(resolve, ms);
    });
  }
}
