import { clock, drift, reliableUntil, wasSuspended } from '../../internal/clock';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { arrayIn, numberIn, textIn } from '../../redis/reply';
import type { Script } from '../../redis/script';
import type { Subscriber } from '../../redis/subscriber';
import { foundIn, lifeIn, ownershipIn } from '../format';
import type { Ownership, ProtocolSettings, Released } from '../protocol';
import { SpringFormat } from '../spring/spring-format';
import { ACQUIRE, type NotifiedBy, POLL, RELEASE, RENEW_GRANT } from './fair-scripts';
import { ServerClock } from './server-clock';
import { grantedAt, type Ticket } from './ticket';

/** What a script says of the lock. */
export interface QueueReply {
  /** The owner value of this process that holds the lock, if one does, and its token. */
  readonly owner: string | undefined;
  readonly token: string;
  /** ms that the lock's key still has to live; `Infinity` without an expiry. */
  readonly life: number;
  /** When the script was sent, on the monotonic clock, and the drift between the clocks then. */
  readonly sentAt: number;
  readonly drift: number;
}

export interface AcquireReply extends QueueReply {
  readonly score: string;
}

export interface PollReply extends QueueReply {
  /** This process had let a grant run out. */
  readonly hasLapsed: boolean;
  /** Positions, from 0 up, of the tickets that are not in the queue. */
  readonly missing: readonly number[];
}

export interface ReleaseReply {
  readonly found: Released;
  /** `undefined` where there were no waiters. */
  readonly queue: QueueReply | undefined;
  readonly isNotificationRefused: boolean;
}

/** Runs the scripts of the fair lock, reads their replies, and learns the server's clock from them. */
export class QueueFormat extends SpringFormat {
  readonly #redis: Redis;
  readonly #subscriber: Subscriber;
  readonly #isFencing: boolean;
  /** On a cluster only a sharded channel belongs to the lock's node: there PUBLISH can say how many listen. */
  readonly #publish: 'PUBLISH' | 'SPUBLISH';
  /** ms until a process that is not heard of is taken for dead. */
  readonly processLife: number;
  readonly #serverClock = new ServerClock();
  #deleteWith: 'UNLINK' | 'DEL' = 'UNLINK';
  /** The connection over which the server is known to have the script that renews. */
  #renewLoadedOn: number | undefined;

  /** `pollInterval` in ms. */
  constructor(redis: Redis, settings: ProtocolSettings, subscriber: Subscriber, pollInterval: number) {
    super(redis, settings);
    this.#redis = redis;
    this.#subscriber = subscriber;
    this.#isFencing = settings.fencing;
    this.#publish = redis.isCluster ? 'SPUBLISH' : 'PUBLISH';
    this.processLife = Math.ceil(3 * pollInterval + 10_000);
  }

  override assertNames(names: LockNames): void {
    names.companion('queue');
  }

  /** The channel of the grants to one process. */
  grants(names: LockNames, process: string): string {
    return `${names.companion('grants')}:${process}`;
  }

  /** For a ticket that waits, or an attempt that does not. */
  async enter(
    names: LockNames,
    ticket: Ticket,
    notifiedBy: NotifiedBy,
    { sentAt, drift: driftBefore }: { readonly sentAt: number; readonly drift: number },
    timeout: number,
  ): Promise<AcquireReply> {
    const { id, ttl, score } = ticket;
    const args = [id, String(ttl), score, notifiedBy, String(this.processLife)];
    const reply = await this.#run(ACQUIRE, names, args, timeout);
    if (!Array.isArray(reply)) {
      numberIn(ACQUIRE, reply, reply);
      return { owner: id, token: String(reply), life: ttl, sentAt, drift: driftBefore, score };
    }
    const [owner, token, life, time, newScore] = arrayIn(ACQUIRE, reply, 5);
    return {
      ...this.#read(ACQUIRE, reply, [owner, token, life, time], sentAt, driftBefore),
      score: textIn(ACQUIRE, reply, newScore),
    };
  }

  async pollFor(
    names: LockNames,
    process: string,
    notifiedBy: NotifiedBy,
    tickets: readonly Ticket[],
    timeout: number,
  ): Promise<PollReply> {
    const sentAt = clock.now();
    const driftBefore = drift();
    const args = [process, notifiedBy, String(this.processLife), ...tickets.map(({ id }) => id)];
    const reply = await this.#run(POLL, names, args, timeout);
    const [owner, token, life, time, lapsed, ...missing] = arrayIn(POLL, reply, 5, 5 + tickets.length);
    return {
      ...this.#read(POLL, reply, [owner, token, life, time], sentAt, driftBefore),
      hasLapsed: numberIn(POLL, reply, lapsed) > 0,
      missing: missing.map((position) => numberIn(POLL, reply, position) - 1),
    };
  }

  /** Releases an owner value, or takes a ticket out of the queue with any grant of it. */
  async leave(names: LockNames, ownerOrTicket: string, timeout: number): Promise<ReleaseReply> {
    const sentAt = clock.now();
    const driftBefore = drift();
    const args = [ownerOrTicket, this.#deleteWith, ...this.channels(names)];
    const reply = await this.#run(RELEASE, names, args, timeout);
    if (!Array.isArray(reply)) {
      return { found: this.#found(reply, reply), queue: undefined, isNotificationRefused: false };
    }
    const [found, owner, token, life, time, refused] = arrayIn(RELEASE, reply, 6);
    return {
      found: this.#found(reply, found),
      queue: this.#read(RELEASE, reply, [owner, token, life, time], sentAt, driftBefore),
      isNotificationRefused: numberIn(RELEASE, reply, refused) > 0,
    };
  }

  /**
   * The first renewal of a grant by hand-over: its command is issued before this function returns. Never rejects. As
   * text, unless the server is known to have the script: a task may block the event loop before a second round trip.
   */
  async renewNow(names: LockNames, owner: string, ttl: number, timeout: number): Promise<Ownership> {
    const sentAt = clock.now();
    const { connectionEpoch } = this.#redis;
    const asText = connectionEpoch === undefined || connectionEpoch !== this.#renewLoadedOn;
    try {
      const keys = [names.lock, names.companion('tickets')];
      const reply = await this.#redis.runNow(RENEW_GRANT, keys, [owner, String(ttl)], timeout, asText);
      this.#renewLoadedOn = connectionEpoch;
      return ownershipIn(RENEW_GRANT, reply, sentAt, ttl);
    } catch (cause) {
      return { state: 'unknown', cause };
    }
  }

  /** The token of a grant: `undefined` without fencing. */
  fencingToken(token: string): number | undefined {
    return this.#isFencing ? Number(token) : undefined;
  }

  /** A process without fencing granted the lock to one with fencing: there is no token yet. */
  lacksToken(token: string): boolean {
    return this.#isFencing && token === '';
  }

  /**
   * Until when a grant may be relied on that arrived as a message: see `ServerClock`. `drift`: as it is now. Nothing is
   * proved when the machine was suspended since the ticket was sent.
   */
  grantUntil(owner: string, window: number, ticket: Ticket, receivedAt: number, driftNow: number): number {
    if (wasSuspended(ticket.drift, driftNow)) return Number.NEGATIVE_INFINITY;
    const stamp = grantedAt(owner) ?? Number.NEGATIVE_INFINITY;
    return this.#serverClock.grantUntil(stamp, window, ticket.sentAt, receivedAt, this.#connection);
  }

  #read(script: Script, reply: unknown, values: readonly unknown[], sentAt: number, driftBefore: number): QueueReply {
    const [owner, token, life, time] = values;
    this.#serverClock.note(sentAt, clock.now(), numberIn(script, reply, time) / 1000, this.#connection);
    return {
      owner: textIn(script, reply, owner) || undefined,
      token: textIn(script, reply, token),
      life: lifeIn(script, reply, life),
      sentAt,
      drift: driftBefore,
    };
  }

  #found(reply: unknown, found: unknown): Released {
    if (Number(found) === 2) this.#deleteWith = 'DEL';
    return foundIn(RELEASE, reply, found);
  }

  /** The connections that stamps and exchanges come over; `undefined`: the client does not say. */
  get #connection(): string | undefined {
    const { connectionEpoch } = this.#redis;
    return connectionEpoch === undefined ? undefined : `${connectionEpoch}/${this.#subscriber.reconnects}`;
  }

  #run(script: Script, names: LockNames, args: readonly string[], timeout: number): Promise<unknown> {
    const keys = [names.lock, names.companion('queue'), names.companion('tickets')];
    if (this.#isFencing) keys.push(names.companion('fence'));
    return this.#redis.run(script, keys, [this.#publish, ...args], timeout);
  }
}

/** Until when a grant may be relied on that a reply reported. */
export function replyUntil({ sentAt, life }: QueueReply): number {
  return reliableUntil(sentAt, Math.min(life, Number.MAX_SAFE_INTEGER));
}
