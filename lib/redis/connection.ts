import { EventEmitter, errorMonitor } from 'node:events';
import { onHandOff } from './hand-offs';

/** What is known of the way to Redis: whether commands may be lost or repeated on it, and why. */
export interface Connection {
  /**
   * The connection that commands go over now; `undefined` where there are several, or it is not known. If it is the
   * same before the first and after the last command, they arrived in order.
   */
  readonly connectionEpoch: number | undefined;
  /** Grows with every connection that was lost, as far as that is known. */
  readonly disruptions: number;
  /** The registry is closed: nothing is to be sent in the background any more. */
  readonly isClosed: boolean;
  /** The client is closed, and sends nothing. The application may connect it again. */
  readonly isClientClosed: boolean;
  /** The client says that it has no connection to the server of this key. */
  isDisconnected(key: string): boolean;
  /** The client connects again by itself. Others do so only when they are given a command: Bun's, a sentinel client. */
  readonly connectsUnasked: boolean;
  /** The last error of the connection since it was made. */
  readonly lastError: unknown;
  /**
   * Whether the answer to what was sent then may come from a server that does not know that it was replaced. With `key`:
   * or a message about it that came now, perhaps before the first answer after a silence.
   */
  mayBeOutdated(sentAt: number, key?: string): boolean;
  /** When the first request was sent, of those since the last answer of the server that has this key. */
  unansweredSince(key: string): number | undefined;
  /** Why the client gave up the last of them; `undefined`: it did not, or that server has answered since. */
  rejectionOf(key: string): unknown;
  /**
   * Sends the attempts that `ask` makes, without an `await`, as one batch where `areTogether`. If one lock is taken, the
   * server skips the free ones (NOT_ASKED).
   */
  allOrNone(ask: () => void): void;
  /** One server is known to have the locks of these names, and all go into one batch. */
  areTogether(names: readonly string[]): boolean;
  /** On a cluster, the slot of a key, for error messages. */
  slotOf(key: string): number | undefined;
}

/** What the monitor needs from a client, by structure. */
interface ConnectionEvents {
  on?(event: string, listener: () => void): unknown;
  off?(event: string, listener: () => void): unknown;
  /** A client that an adapter made: as a listener of `errorMonitor`. Returns the function that stops it. */
  onError?(listener: (error: unknown) => void): () => void;
  /** A pool does not have it. */
  readonly isReady?: boolean;
}

const monitors = new WeakMap<ConnectionEvents, ConnectionMonitor>();

/**
 * Listens to the connection events of one client, for all registries that use it. Node warns of a leak when a client
 * has more than ten listeners of one event, so there is one for each event and not one for each registry.
 */
export class ConnectionMonitor {
  readonly #client: ConnectionEvents;
  readonly #listeners = new Set<() => void>();
  readonly #closeListeners = new Set<() => void>();
  #stop: () => void = () => undefined;
  /**
   * A client that `withTypeMapping` of node-redis made shares the listeners of another, and counts only its own. When it has
   * none left, it begins a list that nothing is emitted to: so one stays.
   */
  #keepsOne = false;
  /** Connections that were lost, as far as the client says. */
  lostConnections = 0;
  /** Times after which the client may be subscribed to nothing, though it is connected: it was closed, or handed over. */
  interruptions = 0;
  /** The last error that the client emitted since it was connected. */
  lastError: unknown;

  /** The monitor of this client. */
  static of(client: ConnectionEvents): ConnectionMonitor {
    const monitor = monitors.get(client) ?? new ConnectionMonitor(client);
    monitors.set(client, monitor);
    return monitor;
  }

  private constructor(client: ConnectionEvents) {
    this.#client = client;
  }

  /**
   * Calls `listener` each time that a connection was made again. Where the client does not say so, it is called when
   * one was lost: what is sent then waits in the client for the next one. Returns the function that stops it.
   */
  onReconnect(listener: () => void): () => void {
    if (this.#listeners.size === 0) this.#stop = this.#attach();
    this.#listeners.add(listener);
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#stop();
    };
  }

  /**
   * Calls `listener` each time that the client was closed, while anybody listens for its reconnects, as every open
   * registry does. Returns the function that stops it.
   */
  onClose(listener: () => void): () => void {
    this.#closeListeners.add(listener);
    return () => void this.#closeListeners.delete(listener);
  }

  /** Returns the function that stops it. */
  #attach(): () => void {
    const client = this.#client;
    // Nobody may have listened when the client connected after it.
    if (client.isReady) this.lastError = undefined;
    if (client instanceof EventEmitter && !this.#keepsOne) {
      this.#keepsOne = client.eventNames().length === 0 && client.listenerCount('error') > 0;
      // errorMonitor is no listener of `error`: an error that the application does not handle still ends its process.
      client.on(errorMonitor, this.#onError);
    }
    for (const [event, listener] of this.#events) client.on?.(event, listener);
    const stopErrors = client instanceof EventEmitter ? undefined : client.onError?.(this.#onError);
    const stopHandOffs = onHandOff(() => {
      this.interruptions++;
      this.#notify();
    });
    return () => {
      stopHandOffs();
      for (const [event, listener] of this.#events) client.off?.(event, listener);
      if (client instanceof EventEmitter && !this.#keepsOne) client.off(errorMonitor, this.#onError);
      stopErrors?.();
    };
  }

  readonly #onReconnected = (): void => {
    this.lastError = undefined;
    this.#notify();
  };

  readonly #onClosed = (): void => {
    this.interruptions++;
    for (const listener of [...this.#closeListeners]) listener();
  };

  readonly #onLost = (): void => {
    this.lostConnections++;
    this.#notify();
  };

  readonly #onNodeLost = (): void => {
    this.lostConnections++;
  };

  readonly #onError = (error: unknown): void => {
    this.lastError = error;
    // A pool has no event for a connection that was made again.
    if (this.#client.isReady === undefined) this.#notify();
  };

  readonly #onNodeError = (error?: unknown): void => {
    this.lastError = error;
  };

  readonly #events = [
    // The client was closed: it emits this before it can be connected again.
    ['end', this.#onClosed],
    ['disconnect', this.#onClosed],
    // A connection was made again, and may lead to a server with other data: of a client, a cluster, a sentinel.
    ['ready', this.#onReconnected],
    ['node-ready', this.#onReconnected],
    ['topology-change', this.#onReconnected],
    // A sentinel client lost a connection. Which of these it emits depends on its version.
    ['client-error', this.#onLost],
    // A cluster lost a connection to one of its nodes. Another event says that it was made again, or that the node is gone.
    ['node-lost', this.#onNodeLost],
    ['topology-change', this.#onLost],
    // A cluster could not connect to one of its nodes.
    ['node-error', this.#onNodeError],
  ] as const;

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
