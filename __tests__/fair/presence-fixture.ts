import { Availability } from '../../lib/core/availability';
import { Hold } from '../../lib/core/hold';
import { SharedTimer } from '../../lib/internal/shared-timer';
import { Presence } from '../../lib/protocols/fair/presence';
import type { QueueFormat } from '../../lib/protocols/fair/queue-format';
import type { PollReply } from '../../lib/protocols/fair/queue-replies';
import type { Ticket } from '../../lib/protocols/fair/ticket';
import { Waiters } from '../../lib/protocols/fair/waiters';
import { LockNames } from '../../lib/redis/names';
import { type Subscriber, Subscription } from '../../lib/redis/subscriber';
import { FakeClock } from '../support/fake-clock';
import { FakeProtocol } from '../support/fake-protocol';

export const IDLE = 100;
export const POLL_INTERVAL = 1_000;
export const UNAVAILABLE_AFTER = 10_000;

interface Poll {
  readonly at: number;
  readonly tickets: readonly string[];
  readonly notifiedBy: string;
}

/** For one test: the presence of one process in the queue of one lock, with a fake clock and a format that records its polls and answers them. */
export class PresenceFixture {
  readonly clock = new FakeClock();
  /** Those that were sent. */
  polls: Poll[] = [];
  /** What a poll is answered with. */
  reply: Partial<PollReply> | Error = {};
  /** Of the process, for messages; `undefined`: it gets none. */
  subscription: Subscription | undefined;
  /** Subscriptions that ended. */
  ended = 0;
  /** How often the connection for messages was made anew. */
  renewed = 0;
  readonly waiters: Waiters;
  readonly presence: Presence;
  readonly #pollTimer = new SharedTimer();

  constructor() {
    const names = new LockNames('registry', 'key');
    const format = this.#format();
    this.subscription = this.newSubscription();
    this.waiters = new Waiters(names, format);
    const services = {
      format,
      subscriber: { subscribe: () => this.subscription, renew: () => this.renewed++ } as unknown as Subscriber,
      pollTimer: this.#pollTimer,
      longestPollInterval: POLL_INTERVAL,
      idleBetweenTries: IDLE,
      sharedWithPollers: false,
      commandTimeout: 5_000,
      unavailableAfter: UNAVAILABLE_AFTER,
      onNotificationRefused: () => undefined,
    };
    this.presence = new Presence(names, services, this.waiters, new Availability(), {
      onMessage: () => undefined,
      onResubscribed: () => undefined,
      onReply: ({ life }) => this.presence.schedulePoll(life),
    });
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
    return this.waiters.ticketFor(acquisition);
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

  /** What a poll needs of the format. */
  #format(): QueueFormat {
    const pollFor = async (_names: LockNames, _process: string, notifiedBy: string, tickets: readonly Ticket[]) => {
      const sentAt = this.clock.now;
      this.polls.push({ at: sentAt, tickets: tickets.map(({ id }) => id), notifiedBy });
      if (this.reply instanceof Error) throw this.reply;
      return {
        owner: undefined,
        token: '',
        life: 60_000,
        sentAt,
        isUnreachable: false,
        missing: [],
        ...this.reply,
      };
    };
    return {
      countsListeners: true,
      channels: () => ['releases'],
      grants: (_names: LockNames, process: string) => `grants:${process}`,
      pollFor,
    } as unknown as QueueFormat;
  }
}
