export type Listener = (message: string, channel: string) => unknown;

/** The channels of a connection that were confirmed, with their listeners. They are subscribed again after a reconnect. */
export class ChannelListeners {
  readonly #listeners = new Map<string, Listener[]>();

  get channels(): string[] {
    return [...this.#listeners.keys()];
  }

  /** One more listener of a channel that is confirmed already; false when it is not. */
  join(channel: string, listener: Listener): boolean {
    return (this.#listeners.get(channel)?.push(listener) ?? 0) > 0;
  }

  open(channel: string, listener: Listener): void {
    this.#listeners.set(channel, [listener]);
  }

  close(channel: string): void {
    this.#listeners.delete(channel);
  }

  deliver(channel: string, message: string): void {
    for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener(message, channel);
  }
}
