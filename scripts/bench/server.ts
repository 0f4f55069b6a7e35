import { createClient } from 'redis';
import { type RedisServer, startRedis } from '../redis';
import type { Address } from './candidates/candidate';
import { confine, SHARES } from './processors';

/** What the server has done so far. */
export interface Look {
  /** By the name of the command; those in scripts count too. */
  readonly calls: ReadonlyMap<string, number>;
  /** ms */
  readonly cpu: number;
}

type Client = ReturnType<typeof connection>;

/** A private Redis for the bench, on loopback as an application's is. */
export class BenchServer {
  readonly address: Address;
  readonly name: string;
  readonly #server: RedisServer;
  readonly #client: Client;

  static async start(): Promise<BenchServer> {
    const server = await startRedis({ port: true });
    confine(server.pid, SHARES.server);
    const client = connection(server.address as Address);
    await client.connect();
    return new BenchServer(server, client);
  }

  private constructor(server: RedisServer, client: Client) {
    this.#server = server;
    this.#client = client;
    this.address = server.address as Address;
    this.name = `${server.name} ${server.version}`;
  }

  /** Takes all keys out. Scripts stay: those of a candidate that has just connected may be among them. */
  async clear(): Promise<void> {
    await this.#client.flushAll();
  }

  async look(): Promise<Look> {
    const info = await this.#client.info('all');
    const calls = new Map<string, number>();
    for (const [, name = '', count] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
      // Without the subcommand, which MONITOR does not tell apart from an argument.
      const command = name.split('|', 1)[0] as string;
      calls.set(command, (calls.get(command) ?? 0) + Number(count));
    }
    const seconds = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
    return { calls, cpu: (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1000 };
  }

  /** What every key holds, its life left aside. */
  async contents(): Promise<Map<string, string>> {
    const keys = await this.#client.keys('*');
    const dumps = await Promise.all(keys.map((key) => this.#client.dump(key)));
    return new Map(keys.map((key, i) => [key, String(dumps[i])]));
  }

  async stop(): Promise<void> {
    this.#client.destroy();
    await this.#server.stop();
  }
}

function connection(address: Address) {
  return createClient({ socket: { ...address } }).on('error', () => {});
}
