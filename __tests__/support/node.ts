import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'redis';
import { freePort } from '../../support/free-port';
import { type RedisServer, startRedis } from '../../support/redis';
import type { TestClient } from './redis';

/** One server of a sentinel set-up or a cluster: it can be frozen, killed, and started again on its port. */
export class Node {
  readonly address: { readonly host: string; readonly port: number };
  readonly #dir: string;
  readonly #args: readonly string[];
  #server: RedisServer;
  #admin: Promise<TestClient> | undefined;

  static async start(...args: string[]): Promise<Node> {
    for (;;) {
      const port = await freePort();
      const dir = await mkdtemp(join(tmpdir(), 'node-'));
      try {
        return new Node(port, dir, args, await startRedis({ port, dir, args }));
      } catch (error) {
        // Another server took the port meanwhile, perhaps for its cluster bus.
        if (!String(error).includes('Address already in use')) throw error;
        await rm(dir, { recursive: true, force: true });
      }
    }
  }

  private constructor(port: number, dir: string, args: readonly string[], server: RedisServer) {
    this.address = { host: '127.0.0.1', port };
    this.#dir = dir;
    this.#args = args;
    this.#server = server;
  }

  /** An independent connection, which comes back after a restart. */
  admin(): Promise<TestClient> {
    this.#admin ??= connectToNode(this.address);
    return this.#admin;
  }

  async send(...command: string[]): Promise<unknown> {
    return (await this.admin()).sendCommand(command);
  }

  freeze(): void {
    this.#server.kill('SIGSTOP');
  }

  thaw(): void {
    this.#server.kill('SIGCONT');
  }

  /** Sends SIGKILL; resolves when the process has ended. */
  async kill(): Promise<void> {
    this.#server.kill('SIGKILL');
    await this.#server.stop();
  }

  /** Starts it again after `kill`, with the data of its files only. */
  async restart(): Promise<void> {
    this.#server = await startRedis({ port: this.address.port, dir: this.#dir, args: this.#args });
  }

  async stop(): Promise<void> {
    (await this.#admin)?.destroy();
    await this.kill();
    await rm(this.#dir, { recursive: true, force: true });
  }
}

/** A plain connection that comes back. */
export async function connectToNode(socket: { readonly host: string; readonly port: number }): Promise<TestClient> {
  const client: TestClient = createClient({ socket: { ...socket, reconnectStrategy: 20 } });
  client.on('error', () => {});
  await client.connect();
  return client;
}
