import { NotReplicatedError } from '../errors';
import { inBackground } from '../internal/background';
import type { ReplicationSettings } from '../settings';
import type { RedisCommands } from './client';

/**
 * A connection of our own: a duplicate of a client or sentinel of node-redis, or of a client that `fromIoredis` made.
 */
export interface OwnClient extends RedisCommands {
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: () => void): unknown;
  wait(replicas: number, timeout: number): Promise<unknown>;
  withCommandOptions?(options: { timeout: number; typeMapping: Record<never, never> }): OwnCommands;
  sendCommand(args: readonly string[]): Promise<unknown>;
  unref?(): void;
  readonly socketEpoch?: number;
  /** `false` once it is closed for good. */
  readonly isOpen?: boolean;
}

type OwnCommands = RedisCommands & Pick<OwnClient, 'sendCommand' | 'wait'>;

/** After one of these a sentinel client may have another connection to the master than before. */
const SENTINEL_LOST = ['error', 'client-error', 'topology-change'];

/**
 * A connection over which locks are acquired, and replicas waited for. WAIT is about what its own connection has seen:
 * on a new one, or on a new master, it would count replicas that have not got the lock.
 */
export class ReplicatingConnection {
  readonly commands: OwnCommands;
  readonly #client: OwnClient;
  readonly #replication: ReplicationSettings;
  /** The WAIT that is about to be sent, for all acquisitions whose replies came at the same time. */
  #next: Promise<number> | undefined;
  #connecting: Promise<unknown> | undefined;
  #lost = 0;

  /** `isWanted`: asked when the connection is lost; it is not made again otherwise. */
  constructor(client: OwnClient, replication: ReplicationSettings, isWanted: () => boolean) {
    this.#client = client;
    this.#replication = replication;
    this.commands = client.withCommandOptions?.({ timeout: 0, typeMapping: {} }) ?? client;
    for (const event of SENTINEL_LOST) client.on(event, () => this.#lost++);
    // It would try to connect for ever, and keep the process alive.
    client.on('reconnecting', () => {
      if (!isWanted()) this.close();
    });
    client.unref?.();
  }

  get isClosed(): boolean {
    return this.#connecting !== undefined && this.#client.isOpen === false;
  }

  /** Resolves when commands may be sent. */
  async open(): Promise<void> {
    this.#connecting ??= inBackground(() => this.#client.connect());
    await this.#connecting;
  }

  close(): void {
    try {
      void Promise.resolve(this.#client.destroy()).catch(() => undefined);
    } catch {} // redis 5: it is closed already
  }

  /**
   * Resolves when enough replicas have what this connection has written so far. To be called when the reply of what was
   * written has just arrived. Rejects with `NotReplicatedError`, or an error that leaves the outcome unknown.
   */
  async replicated(): Promise<void> {
    const { minReplicas, replicaTimeout } = this.#replication;
    const before = this.#epoch;
    this.#next ??= Promise.resolve().then(() => {
      this.#next = undefined;
      return this.#wait();
    });
    const acknowledged = await this.#next;
    if (this.#epoch !== before) throw new Error('The connection was lost before the replicas acknowledged the lock');
    if (acknowledged < minReplicas) throw new NotReplicatedError(minReplicas, acknowledged, replicaTimeout);
  }

  get #epoch(): number {
    return this.#client.socketEpoch ?? this.#lost;
  }

  async #wait(): Promise<number> {
    const { minReplicas, replicaTimeout } = this.#replication;
    try {
      return Number(await this.commands.wait(minReplicas, Math.ceil(replicaTimeout)));
    } catch (cause) {
      if (isOfReplica(cause)) throw new NotReplicatedError(minReplicas, 0, replicaTimeout, { cause });
      throw cause;
    }
  }
}

/** The master became a replica, before WAIT or during it. */
function isOfReplica(error: unknown): boolean {
  return /^(UNBLOCKED|ERR WAIT cannot)/.test((error as Partial<Error> | undefined)?.message ?? '');
}
