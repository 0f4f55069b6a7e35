import type { Lease } from '../api/distributed-lock';
import { LockLostError } from '../api/errors';
import type { AdoptOptions } from '../api/options';
import { BackgroundPauses } from '../internal/timers';
import { type BesideTheTurns, besideTheTurn, LockBeside } from './beside-the-turn';
import type { LockServices, RedisLock } from './lock';
import type { Passport } from './passport';
import type { NotHeld, Travel } from './protocol';

/** A registry's tries to adopt one lease. */
interface Adoption {
  /** What the key gets: the same for all tries, so that a later one finds what an earlier one has done. */
  readonly owner: string;
  /** The try that is under way. */
  running: Promise<unknown> | undefined;
  /** Settles when nothing of its tries that have failed can be in Redis any more. */
  over: Promise<unknown> | undefined;
}

/** The leases that a registry adopts: see `LockRegistry.adopt`. */
export class Adoptions {
  readonly #services: LockServices;
  readonly #besideTheTurns: BesideTheTurns;
  /** The adoptions that Redis has not answered, by the value under which the lease was detached. */
  readonly #unanswered = new Map<string, Adoption>();
  readonly #pauses = new BackgroundPauses();

  constructor(services: LockServices, besideTheTurns: BesideTheTurns) {
    this.#services = services;
    this.#besideTheTurns = besideTheTurns;
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#pauses.close();
  }

  /** One text adopts once. So a call waits for the try before it, and is another try if that was not answered. */
  async adopt(lock: RedisLock, passport: Passport, options: AdoptOptions): Promise<Lease> {
    const { owner: from } = passport;
    // Else the lock may be evicted meanwhile, and `close` would not find the lease.
    lock.runs++;
    try {
      let adoption = this.#adoptionOf(from);
      for (; adoption.running !== undefined; adoption = this.#adoptionOf(from)) await adoption.running;
      const adopting = this.#try(lock, passport, adoption, options);
      adoption.running = adopting.then(
        () => this.#unanswered.delete(from),
        () => this.#failed(adoption, passport, options),
      );
      const answer = await adopting;
      if (typeof answer === 'string') throw notAdopted(lock.key, answer, this.#holds(lock.key, from));
      return answer;
    } finally {
      lock.runs--;
    }
  }

  /** This registry has adopted it, and holds it. */
  #holds(key: string, from: string): boolean {
    return [...(this.#besideTheTurns.get(key) ?? [])].some(({ lock }) => lock.from === from);
  }

  async #try(
    lock: RedisLock,
    passport: Passport,
    adoption: Adoption,
    { ttl: given = passport.ttl, renew = passport.renew }: AdoptOptions,
  ): Promise<Lease | NotHeld> {
    const { minHold, owner: from } = passport;
    const ttl = Math.max(given, minHold);
    let reason: NotHeld = 'expired';
    const protocol = lock.passing.openProtocol();
    const travel = protocol.travel as Travel;
    const adopting = besideTheTurn(protocol, {
      async attempt(hold, timeout) {
        const answer = await travel.adopt(from, hold, timeout);
        if (typeof answer !== 'string') return answer;
        reason = answer;
        return { granted: false, remaining: 0, roundTrip: 0 };
      },
      /** What a try without an answer has done is left for the next one, in this registry until it closes. */
      release: async (to, timeout) => {
        if (this.#unanswered.get(from) !== adoption) return 'expired';
        if (this.#services.waits.isClosed) return travel.detach(to, from, passport.ttl, timeout);
        throw LEFT;
      },
    });
    const services: LockServices = {
      ...this.#services,
      nextOwner: () => adoption.owner,
      besideTurn: () => undefined,
      openProtocol: () => adopting,
    };
    const adopted = new LockBeside(lock, from, services, this.#besideTheTurns);
    return (await adopted.tryLock({ ttl, renew, minHold })) ?? reason;
  }

  /** An adoption without an answer is remembered while the lease may be in Redis. */
  #failed(adoption: Adoption, { owner: from, ttl }: Passport, given: AdoptOptions): void {
    adoption.running = undefined;
    const life = Math.max(ttl, given.ttl ?? 0) + this.#services.settings.commandTimeout;
    const over = Promise.all([adoption.over, this.#pauses.pause(life)]);
    adoption.over = over;
    void over.then(() => {
      // Another try may be under way, or have failed since.
      if (adoption.running === undefined && adoption.over === over) this.#unanswered.delete(from);
    });
  }

  #adoptionOf(from: string): Adoption {
    const known = this.#unanswered.get(from);
    if (known !== undefined) return known;
    const adoption = { owner: this.#services.nextOwner(), running: undefined, over: undefined };
    this.#unanswered.set(from, adoption);
    return adoption;
  }
}

/** `isHere`: this registry has adopted the lease, and holds it. Else nobody knows who has. */
function notAdopted(key: string, reason: NotHeld, isHere: boolean): LockLostError {
  const gone =
    'it was adopted already and is over, its ttl ended before, or its key was deleted, as by a forced unlock';
  const taken = isHere
    ? 'it was adopted already, by this registry, which holds it'
    : 'another owner has its key: it was adopted already, or was over when that one took the lock';
  return new LockLostError(key, reason, undefined, { why: reason === 'stolen' ? taken : gone });
}

/** Looks like an error of Redis: so the release is not repeated at once, and the follow-up goes on. */
const LEFT = new Error('LEFT to the next try: pass the text again');
