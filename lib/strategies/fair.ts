import { clock, pause, reliableUntil } from '../clock';
import type { Redis } from '../redis/client';
import { isFinal, isServerAnswer } from '../redis/failure';
import type { LockNames } from '../redis/names';
import type { Script } from '../redis/script';
import { Subscriber } from '../redis/subscriber';
import type { Subscription } from '../redis/subscription';
import type { Wait } from '../wait';
import { ASK, CLAIM, CLAIM_WINDOW, LEAVE, TOLD } from './fair-scripts';
import type { StrategySettings } from './index';
import { ownership } from './renewals';
import { ServerClock } from './server-clock';
import { Claim, type Grant, type Ownership, type Refusal, type Released } from './strategy';
import { StringKeyStrategy } from './string-key';
import { type RoomServices, Ticket, WaitingRoom } from './waiting-room';

/** A grant is entered unclaimed only as long as so much of its window is left: the claim has to arrive within it. */
const ENTER_WITHIN = CLAIM_WINDOW / 2;

/** Of a ticket that Redis has not given a place yet. */
const NO_RANK = '0';

/** ms between two tries of a claim. */
const LEAST_PAUSE = 10;

/** What ASK and LEAVE answer about the lock. */
interface Answer {
  /** The ticket of this process that has the lock now; empty: none. */
  readonly mine: string;
  readonly token: string;
  /** ms that the lock's key has to live; -1: it has no end. */
  readonly life: number;
  readonly sentAt: number;
}

/**
 * Strict FIFO over all callers of all processes, by direct hand-over: the releasing script itself makes the next ticket
 * the owner, for a short claim window, and tells its process.
 *
 * Whoever is told may enter without another round trip. Why that is safe: the grant is a key that Redis keeps for the
 * window W from the moment M at which the script made it. The message carries the server's time of M, from which
 * `ServerClock` proves a local time before which M was not; so until that time + W (less the drift) the key is there,
 * and nobody else can have the lock. The claim that makes the key last for the full ttl is sent first, and has half of
 * the window to arrive: if it is not confirmed, the lease ends with the window, by its own deadline. Where nothing can
 * be proved, or too little of the window is left, the claim is waited for before the caller enters.
 */
export class FairStrategy extends StringKeyStrategy {
  override readonly queue = 'redis';
  readonly handOver = 0;
  readonly #subscriber: Subscriber;
  readonly #publish: 'PUBLISH' | 'SPUBLISH';
  readonly #idleBetweenTries: number;
  readonly #commandTimeout: number;
  readonly #rooms = new Map<string, WaitingRoom>();
  readonly #serverClock = new ServerClock();
  /** The owner that has each lock in this process, so that news of a grant that came twice is not taken for a stray one. */
  readonly #entered = new WeakMap<LockNames, string>();
  readonly #roomServices: RoomServices;

  constructor(redis: Redis, settings: StrategySettings) {
    super(redis, settings);
    // On a cluster only a sharded channel goes to the node of the lock, so that PUBLISH can tell how many listen.
    this.#publish = redis.isCluster ? 'SPUBLISH' : 'PUBLISH';
    this.#subscriber = new Subscriber(redis.client, settings.subscriber, settings.onWarning, {
      isSharded: redis.isCluster,
      patience: settings.commandTimeout,
    });
    this.#idleBetweenTries = settings.idleBetweenTries;
    this.#commandTimeout = settings.commandTimeout;
    this.#roomServices = {
      idleBetweenTries: this.#idleBetweenTries,
      ask: async (names, tickets) => (await this.#ask(names, tickets)).life,
      listen: (names, process) => this.#listen(names, process),
      leave: (subscription) => this.#subscriber.leave(subscription),
      empty: (names) => this.#rooms.delete(names.lock),
    };
  }

  override assertNames(names: LockNames): void {
    names.companion('queue');
  }

  override async close(): Promise<void> {
    for (const room of this.#rooms.values()) room.close();
    await this.#subscriber.close();
  }

  override async attempt(claim: Claim, timeout: number): Promise<Grant | Refusal> {
    const { names, owner } = claim;
    // Who waits stands in the room before Redis hears of it: a grant may overtake the reply.
    const room = claim.waits ? this.#room(names) : undefined;
    const ticket = room?.admit(claim) ?? new Ticket(claim);
    // From the wait before, this process may be listening still; the first wait of all is to cost an uncontended lock nothing.
    if (this.#subscriber.peek(names.lock) !== undefined) room?.listen();
    let answer: Answer;
    try {
      answer = await this.#ask(names, [ticket], timeout);
    } catch (error) {
      this.#missedReply(names, error);
      throw error;
    }
    const grant = answer.mine === owner ? this.#enter(claim, this.#grant(answer)) : undefined;
    room?.lookAfter(answer.life);
    if (grant !== undefined) return grant;
    return { granted: false, remaining: answer.life, roundTrip: clock.now() - answer.sentAt };
  }

  async wait(claim: Claim, _last: Refusal, wait: Wait): Promise<Grant | undefined> {
    const room = this.#room(claim.names);
    const ticket = room.admit(claim);
    room.listen();
    try {
      const grant = await wait.suspend<Grant | undefined>(wait.remaining, (resume) => ticket.attach(resume));
      return grant === undefined ? undefined : this.#enter(claim, grant);
    } catch (interruption) {
      room.dismiss(claim.owner);
      throw interruption;
    }
  }

  override async release({ names, owner }: Claim, timeout: number): Promise<Released> {
    this.#rooms.get(names.lock)?.dismiss(owner);
    if (this.#entered.get(names) === owner) this.#entered.delete(names);
    const args = [owner, this.deleteCommand, ...this.channels(names)];
    const sentAt = clock.now();
    try {
      const reply = await this.#run(LEAVE, names, args, timeout);
      if (!Array.isArray(reply)) return this.released(Number(reply));
      const [answer, ...rest] = reply;
      this.#take(names, rest, sentAt);
      return this.released(Number(answer));
    } catch (error) {
      this.#missedReply(names, error);
      throw error;
    }
  }

  /** Callers queue in Redis each for itself: there is nobody to hand over to but by `release`. */
  async transfer(from: Claim, _to: Claim, _mayYield: boolean, timeout: number): Promise<Released> {
    return this.release(from, timeout);
  }

  #room(names: LockNames): WaitingRoom {
    let room = this.#rooms.get(names.lock);
    if (room === undefined) {
      room = new WaitingRoom(names, this.#roomServices);
      this.#rooms.set(names.lock, room);
    }
    return room;
  }

  /** It may have said that the lock is another caller's of this process. */
  #missedReply(names: LockNames, error: unknown): void {
    if (!isServerAnswer(error)) void this.#rooms.get(names.lock)?.look();
  }

  #enter(claim: Claim, grant: Grant): Grant {
    this.#entered.set(claim.names, claim.owner);
    this.#rooms.get(claim.names.lock)?.dismiss(claim.owner);
    return grant;
  }

  /** Sends tickets, for the first time or again. */
  async #ask(names: LockNames, tickets: readonly Ticket[], timeout = this.#commandTimeout): Promise<Answer> {
    const told = this.#rooms.get(names.lock)?.isListening ? TOLD.byMessage : TOLD.byPolling;
    const sentAt = clock.now();
    const args: string[] = [];
    for (const { claim } of tickets) {
      if (claim.waits) claim.place ??= { sentAt, rank: NO_RANK };
      args.push(claim.owner, String(claim.ttl), claim.place?.rank ?? NO_RANK, claim.waits ? told : TOLD.never);
    }
    const reply = await this.#run(ASK, names, args, timeout);
    const [only] = tickets;
    if (!Array.isArray(reply) && only !== undefined) {
      const answer = { mine: only.claim.owner, token: String(reply), life: only.claim.ttl, sentAt };
      only.deliver(this.#grant(answer));
      return answer;
    }
    const [mine, token, life, time, ...ranks] = reply as unknown[];
    tickets.forEach(({ claim: { place } }, i) => {
      if (place !== undefined) place.rank = String(ranks[i]);
    });
    return this.#take(names, [mine, token, life, time], sentAt, tickets);
  }

  /** Learns from a reply: what the server's clock shows, and whether the lock is one of our callers' now. */
  #take(
    names: LockNames,
    [mine, token, life, time]: readonly unknown[],
    sentAt: number,
    asked: readonly Ticket[] = [],
  ): Answer {
    const answer = { mine: String(mine), token: String(token), life: Number(life), sentAt };
    this.#serverClock.note(sentAt, clock.now(), Number(time) / 1000, this.#connection);
    if (answer.mine !== '') {
      const isMine = (ticket: Ticket): boolean => ticket.claim.owner === answer.mine;
      const ticket = asked.find(isMine) ?? this.#rooms.get(names.lock)?.ticket(answer.mine);
      if (ticket !== undefined) ticket.deliver(this.#grant(answer));
      else this.#passOn(names, answer.mine);
    }
    return answer;
  }

  #grant({ token, life, sentAt }: Answer): Grant {
    return { granted: true, until: reliableUntil(sentAt, life), fencingToken: this.#fencingToken(token) };
  }

  #fencingToken(token: string): number | undefined {
    return this.fencing ? Number(token) : undefined;
  }

  #listen(names: LockNames, process: string): Subscription | undefined {
    const channel = channelPrefix(names) + process;
    // The other types, and Spring, tell of a release on a channel that is not sharded.
    const channels = this.redis.isCluster ? [channel] : [channel, ...this.channels(names)];
    return this.#subscriber.listen(names.lock, channels, (message) => this.#hear(names, message));
  }

  /** The lock's name: it was released. `look:<ms>`: somebody else has a grant that may not be claimed; `grant:<ticket>:<server time>:<window>:<token>`. */
  #hear(names: LockNames, message: string): void {
    if (message === names.lock) {
      void this.#rooms.get(names.lock)?.look();
      return;
    }
    const [kind, ...parts] = message.split(':');
    if (kind === 'look') {
      this.#rooms.get(names.lock)?.seeTo(Number(parts[0]));
    } else if (kind === 'grant') {
      const [process, number, stamp, window, token = ''] = parts;
      const owner = `${process}:${number}`;
      const ticket = this.#rooms.get(names.lock)?.ticket(owner);
      if (ticket === undefined) this.#passOn(names, owner);
      else void this.#claim(ticket, Number(stamp) / 1000, Number(window), token);
    }
  }

  /** A grant for a ticket that nobody waits for any more, unless it is the news, once more, of the one that is held. */
  #passOn(names: LockNames, owner: string): void {
    if (this.#entered.get(names) === owner) return;
    const stray = new Claim(names, owner, { ttl: CLAIM_WINDOW, waits: false }, undefined);
    this.release(stray, this.#commandTimeout).catch(() => undefined); // its window ends soon
  }

  async #claim(ticket: Ticket, stamp: number, window: number, token: string): Promise<void> {
    const receivedAt = clock.now();
    const sentAt = ticket.claim.place?.sentAt ?? receivedAt - window;
    const until = this.#serverClock.grantUntil(stamp, window, sentAt, receivedAt, this.#connection);
    const confirmation = this.#confirm(ticket.claim, reliableUntil(receivedAt, window));
    const fencingToken = this.#fencingToken(token);
    if (until - receivedAt >= Math.min(ENTER_WITHIN, window / 2)) {
      // A task may block the event loop as soon as it has the lock: the claim is to be on its way before.
      await clock.immediate();
      ticket.deliver({ granted: true, until, fencingToken, confirmation });
      return;
    }
    const ownership = await confirmation;
    if (ownership.state === 'held') ticket.deliver({ granted: true, until: ownership.until, fencingToken });
    else ticket.retry();
  }

  /** Makes a grant last for its ttl, and tries again as long as that is of use. */
  async #confirm({ names, owner, ttl }: Claim, until: number): Promise<Ownership> {
    for (;;) {
      const sentAt = clock.now();
      try {
        const timeout = Math.max(LEAST_PAUSE, (until - sentAt) / 2);
        // As text: an unknown script would cost another round trip, and a task may block the event loop meanwhile.
        const [life, time] = (await this.#run(CLAIM, names, [owner, String(ttl)], timeout, true)) as unknown[];
        this.#serverClock.note(sentAt, clock.now(), Number(time) / 1000, this.#connection);
        return ownership(Number(life), sentAt);
      } catch (cause) {
        if (isFinal(cause) || clock.now() + LEAST_PAUSE >= until) return { state: 'unknown', cause };
        await pause(LEAST_PAUSE);
      }
    }
  }

  /** Which connections stamps and exchanges come over; `undefined`: the client does not tell. */
  get #connection(): string | undefined {
    const { connectionEpoch } = this.redis;
    return connectionEpoch === undefined ? undefined : `${connectionEpoch}/${this.#subscriber.reconnects}`;
  }

  #run(script: Script, names: LockNames, args: readonly string[], timeout: number, asText = false): Promise<unknown> {
    const keys = [names.lock, names.companion('queue'), names.companion('tickets')];
    if (this.fencing) keys.push(names.companion('fence'));
    return this.redis.run(script, keys, [this.#publish, ...args], timeout, asText);
  }
}

function channelPrefix(names: LockNames): string {
  return `${names.companion('grants')}:`;
}
