import type { SingleIoredis } from './ioredis';

/**
 * The commands of a connection whose replies are awaited. Without `autoResendUnfulfilledCommands`, ioredis never
 * settles a command whose connection was lost, once there is a new one. This rejects it.
 */
export class InFlight {
  readonly #rejects = new Set<(error: Error) => void>();
  #isUp: boolean;

  constructor(redis: SingleIoredis) {
    this.#isUp = redis.status === 'ready';
    redis.on('ready', () => {
      this.#isUp = true;
    });
    redis.on('close', () => {
      // What was issued while there was no connection waits in ioredis for the next one.
      if (this.#isUp) this.#rejectAll();
      this.#isUp = false;
    });
  }

  track(reply: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#rejects.add(reject);
      reply.then(resolve, reject).finally(() => this.#rejects.delete(reject));
    });
  }

  #rejectAll(): void {
    const rejects = [...this.#rejects];
    this.#rejects.clear();
    for (const reject of rejects) reject(new Error('The connection was lost before Redis replied'));
  }
}
