import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/**
 * Where node-redis 6 says that it has given a client another socket, since its server moves (a push `MOVING`). The client
 * emits no event then, is subscribed to nothing any more, and counts its connections from 1 again.
 */
const CHANNEL = 'node-redis:connection:handoff';

/** More connections than a client makes between two hand-offs. */
const CONNECTIONS = 2 ** 32;

const listeners = new Set<() => void>();

/** Added to a client's number of connections, this tells connections apart. It grows with a hand-off of any client. */
export const handOffs = { epoch: 0 };

function handedOff(): void {
  handOffs.epoch += CONNECTIONS;
  for (const listener of [...listeners]) listener();
}

/** Calls `listener` after each hand-off of a client of this process. Returns the function that stops it. */
export function onHandOff(listener: () => void): () => void {
  if (listeners.size === 0) subscribe(CHANNEL, handedOff);
  listeners.add(listener);
  return () => {
    if (listeners.delete(listener) && listeners.size === 0) unsubscribe(CHANNEL, handedOff);
  };
}
