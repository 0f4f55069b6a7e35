/** What the adapter needs of a client of valkey-glide, by structure. It does not import the package. */
export interface Glide {
  customCommand(command: string[]): Promise<unknown>;
  close(): void;
}

/**
 * `Decoder.String` of valkey-glide: replies are strings, though the application made its client answer with Buffers.
 */
export const AS_STRING = { decoder: 1 } as const;

export interface GlideMessage {
  readonly message: unknown;
  readonly channel: unknown;
}

/** `GlideClient` and `GlideClusterClient`. */
export interface GlideInternals extends Glide {
  customCommand(command: string[], options?: typeof AS_STRING): Promise<unknown>;
  invokeScript(...args: never[]): unknown;
  /** A cluster. */
  invokeScriptWithRoute?: unknown;
  /** Private: what the client was made with. */
  readonly config?: object;
  readonly isClosed?: boolean;
  readonly constructor: { createClient?(config: object): Promise<GlideSubscriberClient> } & object;
}

/** A client of our own that only listens. valkey-glide 2.3 and later subscribe after the client was made. */
export interface GlideSubscriberClient {
  readonly socket?: { unref?(): unknown };
  subscribe?(channels: string[], timeout: number): Promise<unknown>;
  unsubscribe?(channels: string[], timeout: number): Promise<unknown>;
  /** A cluster. */
  ssubscribe?(channels: string[], timeout: number): Promise<unknown>;
  sunsubscribe?(channels: string[], timeout: number): Promise<unknown>;
  close(): void;
}
