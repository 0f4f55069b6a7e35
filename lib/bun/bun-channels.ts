import { inBackground } from '../internal/background';
import { backgroundPause } from '../internal/clock';
import { ChannelListeners } from '../redis/channel-listeners';
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
  #connection: BunInternals | undefined;
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
      this.#drop();
      throw error;
    }
  }

  async #subscribe(channel: string): Promise<void> {
    this.#connection ??= await inBackground(() => this.#connect());
    await this.#connection.subscribe(channel, this.#listeners.deliver);
    this.#subscribed.add(channel);
  }

  async #unsubscribe(channel: string): Promise<void> {
    this.#subscribed.delete(channel);
    if (this.#subscribed.size === 0) this.#drop();
    else await this.#connection?.unsubscribe(channel);
  }

  async #connect(): Promise<BunInternals> {
    const connection = await this.#original.duplicate();
    if (!connection.connected) await connection.connect();
    // Bun connects again, but does not subscribe again.
    const lost = (): void => {
      if (connection === this.#connection) void this.#again();
    };
    connection.onconnect = lost;
    connection.onclose = lost;
    return connection;
  }

  /** Its channels, on a new connection. */
  async #again(): Promise<void> {
    this.#drop();
    let isComplete = false;
    while (!isComplete && !this.#listeners.isEmpty) {
      const adjusted = this.#listeners.channels.map((channel) => this.#adjust(channel));
      isComplete = (await Promise.allSettled(adjusted)).every(({ status }) => status === 'fulfilled');
      if (!isComplete) await backgroundPause(RETRY_AFTER);
    }
    this.#onReconnected();
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#subscribed.clear();
    connection?.close();
  }
}

async function confirmed(command: Promise<void>): Promise<void> {
  const late = backgroundPause(CONFIRMING).then(() => {
    throw new Error(`Redis did not confirm a channel within ${CONFIRMING} ms`);
  });
  await Promise.race([command, late]);
}
