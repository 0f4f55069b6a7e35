import { Hold } from '../../lib/core/hold';
import { RedisLease } from '../../lib/core/lease';
import type { RedisLock } from '../../lib/core/lock';
import type { Grant, Ownership } from '../../lib/core/protocol';
import { Watchdog } from '../../lib/core/watchdog';
import { clock, reliableUntil } from '../../lib/internal/clock';
import { FakeProtocol } from './fake-protocol';

/** ms */
const COMMAND_TIMEOUT = 5_000;

interface LeaseOptions {
  /** ms for which it is renewed. */
  readonly renewFor?: number;
  /** ms that the reply took which granted it. */
  readonly replyTook?: number;
  /** It was granted by hand-over, for `window` ms, and its first renewal is in flight. */
  readonly firstRenewal?: { readonly window: number; readonly answer: Promise<Ownership> };
}

/** A watchdog with leases whose protocol has no Redis. */
export class WatchdogFixture {
  readonly watchdog = new Watchdog(COMMAND_TIMEOUT);
  readonly protocol = new FakeProtocol();
  #sequence = 0;

  /** The hold of a lease of `ttl` ms that is granted now. */
  lease(
    ttl: number,
    { renewFor = Number.POSITIVE_INFINITY, replyTook = 0, firstRenewal }: LeaseOptions = {},
    Noted = NotedLease,
  ): NotedLease {
    const hold = new Noted(`owner:${++this.#sequence}`, ttl, true, 1, 0, this.protocol);
    hold.stamp();
    const grant: Grant = {
      granted: true,
      owner: hold.ticket,
      until: reliableUntil(clock.now() - replyTook, firstRenewal?.window ?? ttl),
      fencingToken: undefined,
      drift: hold.drift,
      ...(firstRenewal && { renewal: firstRenewal.answer }),
    };
    hold.begin(grant, renewFor, this.watchdog);
    return hold;
  }
}

/** A hold with a lease of the library. Notes when it was lost. */
export class NotedLease extends Hold {
  lostAt: number | undefined;
  #lease: RedisLease | undefined;

  begin(grant: Grant, renewFor: number, watchdog: Watchdog): void {
    const lock = {
      key: 'key',
      services: { settings: { maxHold: renewFor, commandTimeout: COMMAND_TIMEOUT } },
      leaseOver: () => {
        this.lostAt = clock.now();
      },
    } as unknown as RedisLock;
    const now = clock.now();
    const request = {
      ttl: this.ttl,
      renew: renewFor > 0,
      explicitTtl: true,
      waitTime: 0,
      minHold: 0,
      permits: 1,
      signal: undefined,
      origin: undefined,
    };
    this.#lease = new RedisLease(lock, this, request, now, false);
    this.granted(grant, this.#lease, watchdog, now);
  }

  get remaining(): number {
    return this.#lease?.remaining ?? 0;
  }

  get lossReason(): string | undefined {
    return this.#lease?.lossError().reason;
  }
}
