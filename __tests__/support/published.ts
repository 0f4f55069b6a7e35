import { type TracingChannelSubscribers, tracingChannel } from 'node:diagnostics_channel';

/** What the library has published by the end of each call, or section, that ended while `work` ran. */
export async function published<T extends object>(
  what: 'acquire' | 'hold' | 'release',
  work: () => unknown,
): Promise<T[]> {
  const messages: T[] = [];
  const listeners = { asyncEnd: (message: object) => void messages.push(message as T) };
  const channel = tracingChannel<unknown, object>(`redis-lock-registry:${what}`);
  channel.subscribe(listeners as TracingChannelSubscribers<object>);
  try {
    await work();
  } finally {
    channel.unsubscribe(listeners as TracingChannelSubscribers<object>);
  }
  return messages;
}
