import { Hold } from '../../lib/core/hold';
import type { WatchdogOfHold } from '../../lib/core/of-hold';
import type { LockProtocol } from '../../lib/core/protocol';
import type { RegistryParts } from '../../lib/kinds/common/registry-parts';
import { Pollers } from '../../lib/kinds/common/shared-with-pollers';
import type { Connection } from '../../lib/redis/connection';
import type { Proof } from '../../lib/redis/proof';
import type { Run, Script } from '../../lib/redis/script';
import { Subscription } from '../../lib/redis/subscription';

/** A script that a protocol has sent. */
interface Sent {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly timeout: number;
  readonly sentAt: number | undefined;
  readonly asText?: boolean;
  reply(value: unknown): void;
  fail(error: unknown): void;
}

/** Stands for `Redis` below a protocol: the test answers each script. */
export class FakeRedis {
  isCluster = false;
  isClosed = false;
  isReplicated = false;
  connectionEpoch: number | undefined = 1;
  readonly sent: Sent[] = [];

  get last(): Sent {
    return this.sent.at(-1) as Sent;
  }

  /** The scripts that were sent since the last look: what each does, and its arguments. */
  get news(): string[] {
    return this.sent.splice(0).map(({ script, args }) => [script.name, ...args].join(' | '));
  }

  slotOf(key: string): number | undefined {
    return this.isCluster ? key.length : undefined;
  }

  send<T>(
    { script, keys, args, timeout, read, now }: Omit<Run<T>, 'now'> & { now?: number | undefined },
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ): void {
    const reply = (value: unknown): void => {
      try {
        resolve(read(value));
      } catch (error) {
        reject(error);
      }
    };
    this.sent.push({ script, keys, args, timeout, sentAt: now, reply, fail: reject });
  }

  run<T>(
    script: Script,
    keys: string[],
    args: string[],
    timeout: number,
    read: (reply: unknown) => T,
    sentAt?: number,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      this.send({ script, keys, args, timeout, read, now: sentAt }, resolve, reject);
    });
  }

  runNow<T>({ script, keys, args, timeout, read }: Run<T>, asText: boolean): Promise<T> {
    const answer = this.run(script, keys, args, timeout, read);
    this.sent.push({ ...(this.sent.pop() as Sent), asText });
    return answer;
  }
}

/** Stands for `Subscriber`: the test opens each subscription, and sends its messages. */
export class FakeSubscriber {
  mayListen = true;
  isCounted = true;
  /** `subscribe` gives a subscription. */
  isThere = true;
  renewals = 0;
  /** What a waiter knows of messages, and how many wait. */
  readonly proof = {
    isDeaf: false,
    waiting: 0,
    join: () => void this.proof.waiting++,
    leave: () => void this.proof.waiting--,
    doubts: 0,
    doubt: () => void this.proof.doubts++,
  };
  /** What was asked for: sharded channels, and plain ones where there are none. */
  readonly kinds: string[] = [];
  readonly all: Subscription[] = [];

  get last(): Subscription {
    return this.all.at(-1) as Subscription;
  }

  subscribe(channels: readonly string[], onMessage: (message: string) => void): Subscription | undefined {
    if (!this.isThere) return undefined;
    this.all.push(new Subscription(channels, onMessage, (subscription) => subscription.over()));
    return this.last;
  }

  proofOf(): Proof {
    return this.proof as unknown as Proof;
  }

  renew(): void {
    this.renewals++;
  }
}

/** What a registry makes for its protocols, on a fake Redis. */
export function fakeParts(more: object = {}) {
  const redis = new FakeRedis();
  const subscriber = new FakeSubscriber();
  const settings = {
    registryKey: 'r',
    idleBetweenTries: 100,
    commandTimeout: 300,
    unavailableAfter: 2_000,
    replicaTimeout: 70,
    fairLockWaitTimeout: 300_000,
    shardedSubscriptionMode: 'auto',
    fencing: false,
    sharedWithPollers: false,
    ...more,
  };
  let warnings = 0;
  const parts = {
    redis,
    settings,
    id: 'us',
    subscriber: (...kind: boolean[]) => {
      subscriber.kinds.push(kind.join());
      return subscriber;
    },
    pollers: (usualPaceFor: number) => (settings.sharedWithPollers ? new Pollers(100, usualPaceFor) : undefined),
    warnNotificationRefused: () => void warnings++,
  };
  return { parts: parts as unknown as RegistryParts, redis, subscriber, settings, warnings: () => warnings };
}

/** It watches over nothing. */
export const IDLE_WATCHDOG: WatchdogOfHold<Hold> = {
  askedAboutAllAt: 0,
  add: () => undefined,
  renewed: () => undefined,
  moved: () => undefined,
  remove: () => undefined,
  askAbout: () => undefined,
  hurry: () => undefined,
};

/** A hold of a caller that waits, whose next attempt is stamped. */
export function holdOf(
  protocol: LockProtocol,
  ticket = 'me:1',
  { ttl = 60_000, waits = true, minHold = 0, permits = 1, since = 0 } = {},
): Hold {
  const connection = { connectionEpoch: 1, disruptions: 0, isClientClosed: false } as unknown as Connection;
  const hold = new Hold(ticket, { ttl, minHold, permits, waits }, { connection, watchdog: IDLE_WATCHDOG }, protocol);
  hold.stamp(since);
  return hold;
}
