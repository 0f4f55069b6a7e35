/** What the adapter needs of Bun's `RedisClient`, by structure. It does not import it. */
export interface BunRedis {
  readonly connected: boolean;
  send(command: string, args: string[]): Promise<unknown>;
  close(): void;
}

export type MessageListener = (message: string, channel: string) => unknown;

/** The methods that the adapter uses, after `isBunRedis` accepted the value. */
export interface BunInternals extends BunRedis {
  /** Connected, where the original is. */
  duplicate(): Promise<BunInternals>;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: MessageListener): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Each holds one function: those of the application's client are the application's. */
  onconnect: (() => void) | null;
  onclose: ((error: unknown) => void) | null;
}

export function isBunRedis(value: unknown): value is BunInternals {
  const { send, duplicate, subscribe, unsubscribe, connected } = (value ?? {}) as Partial<BunInternals>;
  const hasMethods = [send, duplicate, subscribe, unsubscribe].every((method) => typeof method === 'function');
  return hasMethods && typeof connected === 'boolean';
}
