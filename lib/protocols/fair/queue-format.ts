import type { Keep, ProtocolSettings, Released } from '../../core/protocol';
import { clock, drift, wasSuspended } from '../../internal/clock';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { arrayIn, numberIn, textIn } from '../../redis/reply';
import type { Script } from '../../redis/script';
import type { Subscriber } from '../../redis/subscriber';
import { foundIn, ownerIn, remainingIn } from '../format/replies';
import { keepArguments } from '../format/script-parts';
import { SpringFormat } from '../spring/spring';
import { HAND_OVER, LEAVE, RELEASE } from './fair-release-scripts';
import { ACQUIRE, type NotifiedBy, OUTSIDER, POLL } from './fair-scripts';
import { FirstRenewal } from './first-renewal';
import { KEEP } from './keep-script';
import { QueueKeys } from './queue-keys';
import type { AcquireReply, PollReply, QueueReply, ReleaseReply } from './queue-replies';
import { runScript } from './run-script';
import { ServerClock } from './server-clock';
import { grantedAt, type Ticket } from './ticket';

/** Runs the scripts of the fair lock, reads their replies, and learns the server's clock from them. */
export class QueueFormat extends SpringFormat {
  readonly #subscriber: Subscriber;
  /** On a cluster only a sharded channel belongs to the lock's node: there SPUBLISH can say how many listen. */
  readonly #publish: 'PUBLISH' | 'SPUBLISH';
  /** Grants count only when replicas have them. */
  readonly isReplicated: boolean;
  /** ms until a process that runs no script is taken for dead. */
  readonly processLife: number;
  readonly firstRenewal: FirstRenewal;
  readonly #serverClock = new ServerClock();
  /** What this process says of itself to a script: how it hears of a grant, and when it is to be taken for dead. */
  readonly #presence: Readonly<Record<NotifiedBy, string>>;
  readonly #keys: QueueKeys;

  /** `longestPollInterval` in ms. */
  constructor(redis: Redis, settings: ProtocolSettings, subscriber: Subscriber, longestPollInterval: number) {
    super(redis, settings);
    this.#subscriber = subscriber;
    this.#keys = new QueueKeys(this.isFencing ? (names) => this.fence(names) : undefined);
    this.isReplicated = redis.isReplicated;
    this.firstRenewal = new FirstRenewal(redis, settings.replicaTimeout);
    this.#publish = redis.isCluster ? 'SPUBLISH' : 'PUBLISH';
    this.processLife = Math.ceil(3 * longestPollInterval + 10_000);
    const says = (how: NotifiedBy) => `${this.#publish} ${how} ${this.processLife}`;
    this.#presence = { message: says('message'), poll: says('poll'), none: says('none') };
  }

  override assertNames(names: LockNames): void {
    names.companion('queue');
  }

  /** The channel of the grants to one process. */
  grants(names: LockNames, process: string): string {
    return `${names.companion('grants')}:${process}`;
  }

  /** Sends ACQUIRE, for a ticket that waits, or for a single attempt. Resolves to what `use` makes of the reply. */
  enter<T>(
    names: LockNames,
    ticket: Ticket,
    notifiedBy: NotifiedBy,
    { sentAt, drift: driftBefore }: { readonly sentAt: number; readonly drift: number },
    timeout: number,
    use: (reply: AcquireReply) => T,
    failed: (error: unknown) => void,
  ): Promise<T> {
    const { id, ttl, score } = ticket;
    const args = [id, String(ttl), `${this.#presenceOf(ticket, notifiedBy, sentAt)} ${score}`];
    const read = (reply: unknown): T => use(this.#acquired(reply, ticket, sentAt, driftBefore));
    return runScript(this.redis, ACQUIRE, this.#keys.of(names), args, timeout, read, failed, sentAt);
  }

  #acquired(reply: unknown, { id, ttl, score }: Ticket, sentAt: number, driftBefore: number): AcquireReply {
    if (!Array.isArray(reply)) {
      numberIn(ACQUIRE, reply, reply);
      return {
        owner: id,
        token: String(reply),
        isOutsiders: false,
        isAlone: true,
        life: ttl,
        sentAt,
        drift: driftBefore,
        score,
      };
    }
    const [owner, token, life, time, newScore, holder] = arrayIn(ACQUIRE, reply, 5, 6);
    return {
      ...this.#read(ACQUIRE, reply, [owner, token, life, time], sentAt, driftBefore),
      score: textIn(ACQUIRE, reply, newScore),
      holder: ownerIn(holder),
    };
  }

  pollFor(
    names: LockNames,
    process: string,
    notifiedBy: NotifiedBy,
    tickets: readonly Ticket[],
    timeout: number,
  ): Promise<PollReply> {
    const sentAt = clock.now();
    const driftBefore = drift();
    const args = [process, this.#presence[notifiedBy], ...tickets.map(({ id }) => id)];
    return this.redis.run(POLL, this.#keys.of(names), args, timeout, (reply): PollReply => {
      const [owner, token, life, time, unreachable, holder, ...missing] = arrayIn(POLL, reply, 6, 6 + tickets.length);
      return {
        ...this.#read(POLL, reply, [owner, token, life, time], sentAt, driftBefore),
        holder: ownerIn(holder),
        isUnreachable: numberIn(POLL, reply, unreachable) > 0,
        missing: missing.map((position) => numberIn(POLL, reply, position) - 1),
      };
    });
  }

  /**
   * Releases an owner value, or takes a ticket out of the queue with any grant of it. `next`: the ticket of the next
   * caller of this process, which gets the lock or a position in the queue; `notifiedBy`: how it learns of a grant.
   * `pause`: one for pollers is due; its ms, and the ms from one to the next. Resolves to what `use` makes of the reply.
   */
  leave<T>(
    names: LockNames,
    ownerOrTicket: string,
    next: Ticket | undefined,
    notifiedBy: NotifiedBy,
    pause: { readonly length: number; readonly interval: number } | undefined,
    sentAt: number,
    timeout: number,
    use: (reply: ReleaseReply) => T | Promise<T>,
    failed: (error: unknown) => void,
  ): Promise<T> {
    const script = pause !== undefined ? LEAVE : next !== undefined ? HAND_OVER : RELEASE;
    const { deleteCommand } = this;
    const args =
      next === undefined
        ? [ownerOrTicket, deleteCommand, this.#publish]
        : [ownerOrTicket, deleteCommand, this.#presenceOf(next, notifiedBy, sentAt), next.id, String(next.ttl)];
    if (pause !== undefined) {
      if (next === undefined) args.push('', '');
      args.push(String(pause.length), String(pause.interval));
    }
    args.push(...this.notification(names));
    // The ticket of the next caller is sent for the first time.
    const driftBefore = next?.drift ?? drift(sentAt);
    const read = (reply: unknown) => use(this.#released(script, reply, next, sentAt, driftBefore));
    return runScript(this.redis, script, this.#keys.of(names), args, timeout, read, failed, sentAt);
  }

  #released(
    script: Script,
    reply: unknown,
    next: Ticket | undefined,
    sentAt: number,
    driftBefore: number,
  ): ReleaseReply {
    if (Array.isArray(reply)) {
      const [found, owner, token, life, time, refused, score, pauseIn] = arrayIn(script, reply, 7, 8);
      return {
        found: this.foundIn(script, reply, found),
        queue: this.#read(script, reply, [owner, token, life, time], sentAt, driftBefore),
        score: textIn(script, reply, score),
        isNotificationRefused: numberIn(script, reply, refused) > 0,
        pauseIn: pauseIn === undefined ? undefined : numberIn(script, reply, pauseIn),
      };
    }
    // Nobody waited in the queue, and the lock was released; or `next` has it, before all that wait.
    let found: Released = 'released';
    let queue: QueueReply | undefined;
    if (script !== HAND_OVER || next === undefined) {
      found = this.foundIn(script, reply, reply);
    } else {
      numberIn(script, reply, reply);
      const { id, ttl } = next;
      queue = {
        owner: id,
        token: String(reply),
        isOutsiders: false,
        isAlone: reply === 1,
        life: ttl,
        sentAt,
        drift: driftBefore,
      };
    }
    return { found, queue, score: '', isNotificationRefused: false, pauseIn: undefined };
  }

  /** Gives a lock back that is kept until its `minHold` ends. */
  keepUntil(names: LockNames, ownerOrTicket: string, keep: Keep, timeout: number): Promise<Released> {
    const args = [ownerOrTicket, ...keepArguments(keep), this.#publish, ...this.notification(names)];
    return this.redis.run(KEEP, this.#keys.of(names), args, timeout, (reply) => foundIn(KEEP, reply, reply));
  }

  /** The token of a grant: `undefined` without fencing. */
  fencingToken(token: string): number | undefined {
    return this.isFencing ? Number(token) : undefined;
  }

  /** A process without fencing granted the lock to one with fencing: there is no token yet. */
  lacksToken(token: string): boolean {
    return this.isFencing && token === '';
  }

  /**
   * The local time until which a grant that arrived as a message may be relied on: see `ServerClock`. `drift`: as it is
   * now. Nothing is proved when the machine was suspended since the ticket was sent.
   */
  grantUntil(owner: string, window: number, ticket: Ticket, receivedAt: number, driftNow: number): number {
    if (wasSuspended(ticket.drift, driftNow)) return Number.NEGATIVE_INFINITY;
    const stamp = grantedAt(owner) ?? Number.NEGATIVE_INFINITY;
    return this.#serverClock.grantUntil(stamp, window, ticket.sentAt, receivedAt, this.#connection);
  }

  #read(script: Script, reply: unknown, values: readonly unknown[], sentAt: number, driftBefore: number): QueueReply {
    const [owner, token, life, time] = values;
    this.#serverClock.note(sentAt, clock.now(), numberIn(script, reply, time) / 1000, this.#connection);
    const isOutsiders = owner === OUTSIDER;
    return {
      owner: isOutsiders ? undefined : textIn(script, reply, owner) || undefined,
      isOutsiders,
      token: textIn(script, reply, token),
      life: remainingIn(script, reply, life),
      sentAt,
      drift: driftBefore,
    };
  }

  /** The connections that stamps and exchanges come over; `undefined`: the client does not say. */
  get #connection(): string | undefined {
    const { connectionEpoch } = this.redis;
    return connectionEpoch === undefined ? undefined : `${connectionEpoch}/${this.#subscriber.reconnects}`;
  }

  #presenceOf(ticket: Ticket, notifiedBy: NotifiedBy, sentAt: number): string {
    return `${this.#presence[notifiedBy]} ${ticket.age(sentAt)}`;
  }
}
