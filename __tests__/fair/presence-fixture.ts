import { Availability } from '../../lib/core/availability';
import { Hold } from '../../lib/core/hold';
import { SharedTimer } from '../../lib/internal/timers';
import { type FairFormat, QueueReply } from '../../lib/protocols/fair/fair-format';
import { Presence } from '../../lib/protocols/fair/presence';
import { Ticket } from '../../lib/protocols/fair/ticket';
import { LockNames } from '../../lib/redis/names';
import { Subscription } from '../../lib/redis/subscriber';
import { FakeClock } from '../support/fake-clock';
import { FakeProtocol } from '../support/fake-protocol';

export const IDLE = 100;
export const POLL_INTERVAL = 1_000;
export const UNAVAILABLE_AFTER = 10_000;

interface Poll {
  readonly at: number;
  readonly ticket: string;
  readonly notifiedBy: string;
}

/** For one test: the presence of one process in the queue of one lock, with a fake clock and a lock that records its polls and answers them. */
export class PresenceFixture {
  readonly clock = new FakeClock();
  /** Those that were sent. */
  polls: Poll[] = [];
  /** What a poll is answered with. */
  reply: Partial<QueueReply> | Error = {};
  /** Of the process, for messages; `undefined`: it gets none. */
  subscription: Subscription | undefined;
  /** Subscriptions that ended. */
  ended = 0;
  /** How often the connection for messages was made anew. */
  renewed = 0;
  readonly presence: Presence;
  readonly #pollTimer = new SharedTimer();

  /** What the presence knows of its lock. */
  readonly lock = {
    ticket: undefined as Ticket | undefined,
    availability: new Availability(),
    onReply: ({ life }: QueueReply) => this.presence.schedulePoll(life),
    onMessage: () => undefined,
  };

  constructor() {
    this.subscription = this.newSubscription();
    const format = {
      parts: {
        settings: { idleBetweenTries: IDLE, commandTimeout: 5_000, unavailableAfter: UNAVAILABLE_AFTER },
        redis: { run: (_script: unknown, _keys: unknown, args: [string, string]) => this.#poll(...args) },
      },
      presence: { message: 'message', poll: 'poll' },
      keysOf: () => [],
      subscriber: { subscribe: () => this.subscription, renew: () => this.renewed++ },
      pollTimer: this.#pollTimer,
      longestPollInterval: POLL_INTERVAL,
      countsListeners: true,
      channels: () => ['releases'],
      grants: (_names: LockNames, process: string) => `grants:${process}`,
    };
    this.presence = new Presence(new LockNames('registry', 'key'), format as unknown as FairFormat, this.lock);
  }

  close(): void {
    this.#pollTimer.close();
    this.clock.restore();
  }

  newSubscription(): Subscription {
    return new Subscription(
      ['channel'],
      () => undefined,
      () => this.ended++,
    );
  }

  /** A caller gets a ticket and waits. */
  admit(number: number): Ticket {
    const acquisition = new Hold(`process:${number}`, 60_000, true, undefined, 0, new FakeProtocol());
    acquisition.stamp();
    this.lock.ticket = new Ticket(acquisition);
    return this.lock.ticket;
  }

  /** The caller leaves. */
  leave(): void {
    this.lock.ticket = undefined;
    this.presence.leave();
  }

  /** A caller waits, messages reach it, and Redis knows that. */
  async listening(): Promise<Ticket> {
    const ticket = this.admit(1);
    this.presence.listen();
    this.subscription?.confirmed(true);
    await this.clock.advance(0);
    this.polls.length = 0;
    return ticket;
  }

  async #poll(ticket: string, notifiedBy: string): Promise<QueueReply> {
    const sentAt = this.clock.now;
    this.polls.push({ at: sentAt, ticket, notifiedBy });
    if (this.reply instanceof Error) throw this.reply;
    return Object.assign(new QueueReply(sentAt, 0), { life: 60_000, score: '1', ...this.reply });
  }
}
