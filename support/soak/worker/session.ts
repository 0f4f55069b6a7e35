import { createClient } from 'redis';
import { RedisLockRegistry } from '../../../lib';
import type { WorkerSettings } from '../messages';
import { REPLICATED, registryOptions } from '../settings';

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

/** A registry on a client of its own, as an application has one. */
export class Session {
  /** Its clients do not reconnect by themselves. */
  givesUp = false;
  readonly registry: RedisLockRegistry;
  readonly #client: ReturnType<typeof createClient>;

  static async open(settings: WorkerSettings): Promise<Session> {
    let session: Session | undefined;
    const reconnectStrategy = () => (session?.givesUp ? false : 20);
    const client = createClient({ socket: { ...settings.address, reconnectStrategy } });
    client.on('error', () => {}); // the faults of the soak
    await client.connect();
    session = new Session(settings, client as ReturnType<typeof createClient>);
    return session;
  }

  private constructor({ name, type, lockType }: WorkerSettings, client: ReturnType<typeof createClient>) {
    this.#client = client;
    const replicated = type === 'replicated' ? REPLICATED : {};
    this.registry = new RedisLockRegistry(client, {
      ...registryOptions,
      ...replicated,
      name,
      lockType,
      onWarning: () => {},
    });
  }

  /** As README says: nothing may be left in Redis then but the leases that were given up after `timeout`. */
  async close(timeout: number): Promise<void> {
    await this.registry.close({ timeout });
    this.closeClient();
  }

  closeClient(): void {
    if (this.#client.isOpen) this.#client.destroy();
  }

  async connectClient(): Promise<void> {
    this.givesUp = false;
    if (!this.#client.isOpen) await this.#client.connect();
  }
}
