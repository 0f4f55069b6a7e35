import { createClient } from 'redis';
import { type LockType, RedisLockRegistry } from '../../../lib';
import { registryOptions } from '../settings';

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

/** A registry on a client of its own, as an application has one. */
export class Session {
  readonly registry: RedisLockRegistry;
  readonly #client: ReturnType<typeof createClient>;

  static async open(name: string, address: SocketAddress, lockType: LockType): Promise<Session> {
    const client = createClient({ socket: { ...address, reconnectStrategy: 20 } });
    client.on('error', () => {}); // the faults of the soak
    await client.connect();
    return new Session(name, client as ReturnType<typeof createClient>, lockType);
  }

  private constructor(name: string, client: ReturnType<typeof createClient>, lockType: LockType) {
    this.#client = client;
    this.registry = new RedisLockRegistry(client, { ...registryOptions, name, lockType, onWarning: () => {} });
  }

  /** As README says: nothing may be left in Redis then but the leases that were given up after `timeout`. */
  async close(timeout: number): Promise<void> {
    await this.registry.close({ timeout });
    this.#client.destroy();
  }
}
