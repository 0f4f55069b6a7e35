import { Acquisition } from '../../lib/acquire/acquisition';
import { clock, reliableUntil } from '../../lib/internal/clock';
import { RenewableLease } from '../../lib/lease/renewable-lease';
import { Watchdog } from '../../lib/lease/watchdog';
import type { Grant, Ownership } from '../../lib/protocols/protocol';
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

  /** A lease of `ttl` ms that is granted now. */
  lease(
    ttl: number,
    { renewFor = Number.POSITIVE_INFINITY, replyTook = 0, firstRenewal }: LeaseOptions = {},
    Lease = NotedLease,
  ): NotedLease {
    const acquisition = new Acquisition(`owner:${++this.#sequence}`, ttl, true, 1, 0);
    acquisition.stamp();
    const grant: Grant = {
      granted: true,
      owner: acquisition.ticket,
      until: reliableUntil(clock.now() - replyTook, firstRenewal?.window ?? ttl),
      fencingToken: undefined,
      drift: acquisition.drift,
      ...(firstRenewal && { renewal: firstRenewal.answer }),
    };
    return new Lease(acquisition, grant, renewFor, this.protocol, this.watchdog);
  }
}

/** A lease of the library, which notes when it was lost. */
export class NotedLease extends RenewableLease {
  readonly key = 'key';
  readonly isUnlocked = false;
  readonly commandTimeout = COMMAND_TIMEOUT;
  readonly watchdog: Watchdog;
  lostAt: number | undefined;

  constructor(acquisition: Acquisition, grant: Grant, renewFor: number, protocol: FakeProtocol, watchdog: Watchdog) {
    const now = clock.now();
    super(acquisition, grant, renewFor, now, protocol);
    this.watchdog = watchdog;
    this.watch(grant, now);
  }

  get lossReason(): string {
    return this.lossError().reason;
  }

  protected onLoss(): void {
    this.lostAt = clock.now();
  }
}
