import { backgroundPause, inBackground } from '../internal/clock';
import { ChannelListeners } from '../redis/channel-listeners';
import { isServerAnswer } from '../redis/failure';
import type { BunInternals, MessageListener } from './bun';

/** ms that Redis has to confirm a channel. */
const CONFIRMING = 5_000;

/** ms until a connection that failed is tried again. */
const RETRY_AFTER = 1_000;

/**
 * The channels of a client's registries, over a connection of our own: a client of Bun's that listens cannot send
 * commands. It would keep the process alive, so it is closed when it has no channels.
 */
export class BunChannels {
  readonly #original: BunInternals;
  readonly #onReconnected: () => void;
  readonly #listeners = new ChannelListeners();
  readonly #subscribed = new Set<string>();
  #connection: Promise<BunInternals> | undefined;
  #isRestoring = false;
  /** Everything goes over the connection one after the other. */
  #traffic: Promise<unknown> = Promise.resolve();

  /** `onReconnected`: messages may have been missed. */
  constructor(original: BunInternals, onReconnected: () => void) {
    this.#original = original;
    this.#onReconnected = onReconnected;
  }

  async join(channel: string, listener: MessageListener): Promise<void> {
    this.#listeners.add(channel, listener);
    try {
      await this.#adjust(channel);
    } catch (error) {
      await this.part(channel, listener);
      throw error;
    }
  }

  /** Without a listener: all of them. Never rejects. */
  async part(channel: string, listener: MessageListener | undefined): Promise<void> {
    if (!this.#listeners.remove(channel, listener)) return;
    await this.#adjust(channel).catch(() => undefined); // it ends with its connection
  }

  #adjust(channel: string): Promise<void> {
    const adjusted = this.#traffic.then(() => this.#adjustNow(channel));
    this.#traffic = adjusted.catch(() => undefined);
    return adjusted;
  }

  async #adjustNow(channel: string): Promise<void> {
    const isWanted = this.#listeners.has(channel);
    if (isWanted === this.#subscribed.has(channel)) return;
    try {
      if (isWanted) await confirmed(this.#subscribe(channel));
      else await confirmed(this.#unsubscribe(channel));
    } catch (error) {
      // A refusal is about this channel only. Otherwise the connection has failed, and what was subscribed with it.
      if (!isServerAnswer(error)) {
        if (this.#subscribed.size > 0) void this.#restore();
        else this.#drop();
      }
      throw error;
    }
  }

  async #subscribe(channel: string): Promise<void> {
    this.#connection ??= inBackground(() => this.#connect());
    const connecting = this.#connection;
    await (await connecting).subscribe(channel, this.#listeners.deliver);
    // It may be late: another connection has taken its place.
    if (connecting === this.#connection) this.#subscribed.add(channel);
  }

  async #unsubscribe(channel: string): Promise<void> {
    this.#subscribed.delete(channel);
    if (this.#subscribed.size === 0) this.#drop();
    else await (await this.#connection)?.unsubscribe(channel);
  }

  #connect(): Promise<BunInternals> {
    const connecting = this.#original.duplicate().then(async (connection) => {
      if (!connection.connected) await connection.connect();
      // Bun connects again, but does not subscribe again.
      const lost = (): void => {
        if (connecting === this.#connection) void this.#restore();
      };
      connection.onconnect = lost;
      connection.onclose = lost;
      return connection;
    });
    return connecting;
  }

  /** All channels, on a new connection. Never rejects. */
  async #restore(): Promise<void> {
    this.#drop();
    if (this.#isRestoring) return;
    this.#isRestoring = true;
    const isComplete = () => this.#listeners.channels.every((channel) => this.#subscribed.has(channel));
    while (!isComplete()) {
      await Promise.allSettled(this.#listeners.channels.map((channel) => this.#adjust(channel)));
      if (!isComplete()) await backgroundPause(RETRY_AFTER);
    }
    this.#isRestoring = false;
    this.#onReconnected();
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#subscribed.clear();
    connection?.then((one) => one.close()).catch(() => undefined);
  }
}

async function confirmed(command: Promise<void>): Promise<void> {
  const late = backgroundPause(CONFIRMING).then(() => {
    throw new Error(`Redis did not confirm a channel within ${CONFIRMING} ms`);
  });
  await Promise.race([command, late]);
}
