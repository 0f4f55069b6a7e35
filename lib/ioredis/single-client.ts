import { errorMonitor } from 'node:events';
import type { EvalOptions, RedisClient } from '../redis/client';
import { ClientClosedError } from '../redis/failure';
import { InFlight } from './in-flight';
import type { SingleIoredis } from './ioredis';
import { OwnConnection } from './own-connection';

/** An instance of ioredis' `Redis`, as the registry wants a plain client. */
export class SingleClient implements RedisClient {
  readonly #redis: SingleIoredis;
  readonly #inFlight: InFlight | undefined;
  #stream: unknown;
  #epoch = 0;

  constructor(redis: SingleIoredis) {
    this.#redis = redis;
    if (redis.options.autoResendUnfulfilledCommands === false) this.#inFlight = new InFlight(redis);
  }

  /** A connection that was made again has another socket: so it shows without a listener. */
  get socketEpoch(): number {
    const { stream } = this.#redis;
    if (stream !== this.#stream) {
      this.#stream = stream;
      this.#epoch++;
    }
    return this.#epoch;
  }

  get isOpen(): boolean {
    const { status, manuallyClosing } = this.#redis;
    // When `disconnect` is called in the pause before the next try, ioredis keeps this status for ever.
    return status !== 'end' && !(status === 'reconnecting' && manuallyClosing === true);
  }

  get isReady(): boolean {
    return this.#redis.status === 'ready';
  }

  eval(script: string, { keys = [], arguments: args = [] }: EvalOptions = {}): Promise<unknown> {
    return this.#send(() => this.#redis.eval(script, keys.length, ...keys, ...args));
  }

  evalSha(sha1: string, { keys = [], arguments: args = [] }: EvalOptions = {}): Promise<unknown> {
    return this.#send(() => this.#redis.evalsha(sha1, keys.length, ...keys, ...args));
  }

  async scan(cursor: string, { MATCH, COUNT }: { MATCH: string; COUNT: number }) {
    const page = await this.#redis.scan(cursor, 'MATCH', MATCH, 'COUNT', String(COUNT));
    return { cursor: page[0], keys: page[1] };
  }

  duplicate(): OwnConnection {
    return new OwnConnection(this.#redis);
  }

  on(event: string, listener: () => void): void {
    this.#redis.on(event, listener);
  }

  off(event: string, listener: () => void): void {
    this.#redis.off(event, listener);
  }

  onError(listener: (error: unknown) => void): () => void {
    this.#redis.on(errorMonitor, listener as never);
    return () => this.#redis.off(errorMonitor, listener as never);
  }

  #send(send: () => Promise<unknown>): Promise<unknown> {
    if (this.#redis.status === 'end') return Promise.reject(new ClientClosedError('The client is closed'));
    const reply = send();
    return this.#inFlight === undefined ? reply : this.#inFlight.track(reply);
  }
}
