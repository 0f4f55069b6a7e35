import type { Ownership, Released } from '../../core/protocol';
import { clock, reliableUntil } from '../../internal/clock';
import { TimerForMany } from '../../internal/timers';
import type { LockNames } from '../../redis/names';
import type { Script } from '../../redis/script';
import type { Subscriber } from '../../redis/subscriber';
import type { RegistryParts } from '../common/registry-parts';
import { arrayIn, numberIn, ownerIn, ownershipIn, remainingIn, textIn, unknownOwnership } from '../common/replies';
import { LONGEST_SLEEP } from '../common/waiting';
import { SpringFormat } from '../spring/kind';
import { type NotifiedBy, OUTSIDER, RENEW_GRANT } from './scripts';
import type { Ticket } from './ticket';

/** What a script says of the lock. */
export class QueueReply {
  /** The owner value of this process that holds the lock, if one does, and its token. */
  owner: string | undefined;
  token = '';
  /** How many more tokens there are, each one higher than the one before. */
  moreTokens = 0;
  /** Nobody else waited, in any process, as far as the reply says. */
  isAlone = false;
  /** ms that the lock's key still has to live; `Infinity` without an expiry. */
  life = 0;
  /** The position of the ticket that the script was sent for; '': it has none. */
  score = '';
  /** Who held the lock when the script ran, if it says so. That may be a lock type that publishes no releases. */
  holder: string | undefined;
  isOutsiders = false;
  /** What became of the lease that was to end. */
  found: Released = 'released';
  isNotificationRefused = false;
  /** Redis knows of no connection on which this process listens, or what it published there has not arrived. */
  isUnreachable = false;
  /** 0 when a release left the lock to pollers, or ms until the next one may; `undefined`: it never does. */
  pauseIn: number | undefined;
  /** When the script was sent, on the monotonic clock, and the drift between the clocks then. */
  readonly sentAt: number;
  readonly drift: number;

  constructor(sentAt: number, drift: number) {
    this.sentAt = sentAt;
    this.drift = drift;
  }

  /** The local time until which the grant may be relied on. */
  get until(): number {
    return reliableUntil(this.sentAt, Math.min(this.life, Number.MAX_SAFE_INTEGER));
  }
}

/** What the fair locks of a registry share. Reads the replies of their scripts. */
export class FairFormat extends SpringFormat {
  readonly parts: RegistryParts;
  readonly subscriber: Subscriber;
  readonly pollTimer = new TimerForMany();
  /** ms; the longest time between two polls while messages reach this process. */
  readonly longestPollInterval: number;
  /** ms until a process that runs no script is taken for dead. */
  readonly processLife: number;
  /** On a cluster only a sharded channel belongs to the lock's node: so SPUBLISH can say how many listen. */
  readonly publish: 'PUBLISH' | 'SPUBLISH';
  /** What this process says to a script: how it hears of a grant, and when it is to be taken for dead. */
  readonly presence: Readonly<Record<NotifiedBy, string>>;
  /** The connection over which the server is known to have the first renewal. */
  #renewalLoadedOn: number | undefined;
  /** KEYS of the last command, kept for a busy lock. */
  #keys: string[] | undefined;

  constructor(parts: RegistryParts) {
    const { redis, settings } = parts;
    super(redis, settings);
    this.parts = parts;
    this.subscriber = parts.subscriber(redis.isCluster, false);
    this.longestPollInterval = LONGEST_SLEEP * settings.idleBetweenTries;
    this.processLife = Math.ceil(3 * this.longestPollInterval + 10_000);
    this.publish = redis.isCluster ? 'SPUBLISH' : 'PUBLISH';
    const says = (how: NotifiedBy) => `${this.publish} ${how} ${this.processLife}`;
    this.presence = { message: says('message'), poll: says('poll'), none: says('none') };
  }

  override assertNames(names: LockNames): void {
    names.companion('queue');
  }

  keysOf(names: LockNames): string[] {
    if (this.#keys?.[0] !== names.lock) {
      const [lock, ...fence] = this.keys(names) as [string, ...string[]];
      this.#keys = [lock, names.companion('queue'), names.companion('tickets'), ...fence];
    }
    return this.#keys;
  }

  /** `ticket`: the one that the script was sent for, to give it the lock or a position. */
  read(script: Script, reply: unknown, ticket: Ticket | undefined, sentAt: number, driftBefore: number): QueueReply {
    const said = new QueueReply(sentAt, driftBefore);
    if (!Array.isArray(reply)) {
      if (ticket === undefined) {
        said.found = this.foundIn(script, reply, reply);
        return said;
      }
      // The ticket has the lock: 1, or 2 where others wait, or tokens. Several only where nobody else waits.
      const { fencingToken, moreTokens = 0 } = this.tokensIn(script, reply);
      said.owner = ticket.id;
      if (fencingToken !== undefined) said.token = String(fencingToken);
      said.moreTokens = moreTokens;
      said.life = ticket.hold.ttl;
      said.score = ticket.score;
      said.isAlone = reply === 1 || moreTokens > 0;
      return said;
    }
    const values = arrayIn(script, reply, 2, 9);
    const [life, score, owner = '', token = '', holder, found = 1, refused = 0, unreachable = 0, pauseIn] = values;
    said.isOutsiders = owner === OUTSIDER;
    said.owner = said.isOutsiders ? undefined : textIn(script, reply, owner) || undefined;
    said.token = textIn(script, reply, token);
    said.life = remainingIn(script, reply, life);
    said.score = textIn(script, reply, score);
    said.holder = ownerIn(holder);
    said.found = this.foundIn(script, reply, found);
    said.isNotificationRefused = numberIn(script, reply, refused) > 0;
    said.isUnreachable = numberIn(script, reply, unreachable) > 0;
    said.pauseIn = pauseIn === undefined ? undefined : numberIn(script, reply, pauseIn);
    return said;
  }

  /**
   * The first renewal of a grant by hand-over. Its command is issued before this function returns, and never rejects. As
   * text, unless the server is known to have the script: a task may block the event loop before a second round trip.
   */
  async renewGrant(names: LockNames, owner: string, ttl: number, timeout: number): Promise<Ownership> {
    const sentAt = clock.now();
    const { connectionEpoch, isReplicated } = this.redis;
    const asText = connectionEpoch === undefined || connectionEpoch !== this.#renewalLoadedOn;
    // The wait for replicas may delay the answer.
    const limit = timeout + (isReplicated ? this.parts.settings.replicaTimeout : 0);
    const read = (reply: unknown): Ownership => {
      this.#renewalLoadedOn = connectionEpoch;
      return ownershipIn(RENEW_GRANT, reply, sentAt, ttl);
    };
    try {
      const args = [owner, String(ttl)];
      const run = { script: RENEW_GRANT, keys: [names.lock], args, timeout: limit, now: sentAt, read };
      return await this.redis.runNow(run, asText);
    } catch (cause) {
      return unknownOwnership(cause, read);
    }
  }
}
