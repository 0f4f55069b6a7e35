import { createClient, createCluster } from 'redis';
import { RedisLockRegistry } from '../../../lib';
import type { WorkerSettings } from '../messages';
import { isReplaceable, KEYS, REPLICATED, registryOptions } from '../settings';

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

/** A registry on a client of its own, as an application has one. */
export class Session {
  /** Its clients do not reconnect by themselves. */
  givesUp = false;
  readonly registry: RedisLockRegistry;
  /** The keys of the leases that its `close` gave up. A caller that left in its grace had not got its lease. */
  readonly givenUp: string[] = [];
  readonly #client: ReturnType<typeof createClient>;
  readonly #subscriber: ReturnType<typeof createClient> | undefined;

  static async open(settings: WorkerSettings): Promise<Session> {
    let session: Session | undefined;
    const reconnectStrategy = () => (session?.givesUp ? false : 20);
    const socket = { ...settings.address, reconnectStrategy };
    const client = settings.isCluster ? createCluster({ rootNodes: [{ socket }] }) : createClient({ socket });
    client.on('error', () => {}); // the faults of the soak
    await client.connect();
    const subscriber = settings.listensAt && createClient({ socket: { ...settings.listensAt, reconnectStrategy: 20 } });
    subscriber?.on('error', () => {});
    await subscriber?.connect();
    session = new Session(
      settings,
      client as unknown as ReturnType<typeof createClient>,
      subscriber as ReturnType<typeof createClient> | undefined,
    );
    return session;
  }

  private constructor(
    { name, type, lockType }: WorkerSettings,
    client: ReturnType<typeof createClient>,
    subscriber: ReturnType<typeof createClient> | undefined,
  ) {
    this.#client = client;
    this.#subscriber = subscriber;
    const replicated = type === 'replicated' ? REPLICATED : {};
    this.registry = new RedisLockRegistry(client, {
      ...registryOptions,
      ...replicated,
      inbox: isReplaceable(type),
      ...(subscriber === undefined ? {} : { subscriber }),
      name,
      lockType,
      onWarning: ({ code, message }) => {
        if (code === 'CLOSED_WHILE_HELD') this.givenUp.push(...KEYS.filter((key) => message.includes(`"${key}"`)));
      },
    });
  }

  /** As README says: nothing may be left in Redis then but the leases that were given up after `timeout`. */
  async close(timeout: number): Promise<void> {
    await this.registry.close({ timeout });
    this.closeClient();
    if (this.#subscriber?.isOpen) this.#subscriber.destroy();
  }

  closeClient(): void {
    if (this.#client.isOpen) this.#client.destroy();
  }

  async connectClient(): Promise<void> {
    this.givesUp = false;
    if (!this.#client.isOpen) await this.#client.connect();
  }
}
