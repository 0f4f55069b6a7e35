import type { MessageListener } from './subscriber-connection';

/** The listeners of the channels of one connection. */
export class ChannelListeners {
  readonly #byChannel = new Map<string, Set<MessageListener>>();

  get isEmpty(): boolean {
    return this.#byChannel.size === 0;
  }

  get channels(): string[] {
    return [...this.#byChannel.keys()];
  }

  has(channel: string): boolean {
    return this.#byChannel.has(channel);
  }

  add(channel: string, listener: MessageListener): void {
    this.#byChannel.set(channel, (this.#byChannel.get(channel) ?? new Set()).add(listener));
  }

  /** `undefined`: all of the channel. Returns whether the channel has none now. */
  remove(channel: string, listener: MessageListener | undefined): boolean {
    const listeners = this.#byChannel.get(channel);
    if (listener !== undefined) listeners?.delete(listener);
    if (listener !== undefined && listeners !== undefined && listeners.size > 0) return false;
    this.#byChannel.delete(channel);
    return true;
  }

  /** A listener may subscribe or unsubscribe others. */
  readonly deliver: MessageListener = (message, channel) => {
    for (const listener of [...(this.#byChannel.get(channel) ?? [])]) listener(message, channel);
  };
}
