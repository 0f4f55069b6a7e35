import { createClient } from 'redis';
import { type RedisServer, startRedis } from '../redis';
import type { Address } from './candidates/candidate';
import { CPU_SETS, pinTo } from './cpu-sets';

/** Totals of the server since its start. */
export interface ServerStats {
  /** Calls of each command, in scripts too. */
  readonly calls: ReadonlyMap<string, number>;
  /** ms of CPU */
  readonly cpu: number;
  readonly traffic: {
    /** How often the server read from a socket: one read takes all that a client has written until then. */
    readonly reads: number;
    /** bytes */
    readonly received: number;
    readonly sent: number;
  };
}

type Client = ReturnType<typeof connection>;

/** A private Redis for the bench, on loopback TCP. */
export class BenchServer {
  readonly address: Address;
  readonly name: string;
  readonly #server: RedisServer;
  readonly #client: Client;
  #replica: RedisServer | undefined;

  static async start(): Promise<BenchServer> {
    const server = await startRedis({ port: true });
    pinTo(server.pid, CPU_SETS.server);
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

  /** Deletes all keys. Scripts stay cached: a candidate that has just connected may have loaded some. */
  async clear(): Promise<void> {
    await this.#client.flushAll();
  }

  async stats(): Promise<ServerStats> {
    const info = await this.#client.info('all');
    const calls = new Map<string, number>();
    for (const [, name = '', count] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
      // Without the subcommand: MONITOR prints it as an argument.
      const command = name.split('|', 1)[0] as string;
      calls.set(command, (calls.get(command) ?? 0) + Number(count));
    }
    const field = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
    const traffic = {
      reads: field('total_reads_processed'),
      received: field('total_net_input_bytes'),
      sent: field('total_net_output_bytes'),
    };
    return { calls, cpu: (field('used_cpu_user') + field('used_cpu_sys')) * 1000, traffic };
  }

  /** The value of every key, without its ttl. */
  async contents(): Promise<Map<string, string>> {
    const keys = await this.#client.keys('*');
    const dumps = await Promise.all(keys.map((key) => this.#client.dump(key)));
    return new Map(keys.map((key, i) => [key, String(dumps[i])]));
  }

  /** Resolves when a replica follows. It shares the CPUs of the candidates, as it has a machine of its own in production. */
  async startReplica(): Promise<void> {
    const { host, port } = this.address;
    await this.#client.configSet('repl-diskless-sync-delay', '0');
    this.#replica = await startRedis({ port: true, args: ['--replicaof', `${host} ${port}`] });
    pinTo(this.#replica.pid, CPU_SETS.clients);
    while ((await this.#client.wait(1, 1_000)) < 1);
  }

  async stopReplica(): Promise<void> {
    await this.#replica?.stop();
    this.#replica = undefined;
  }

  async stop(): Promise<void> {
    await this.stopReplica();
    this.#client.destroy();
    await this.#server.stop();
  }
}

function connection(address: Address) {
  return createClient({ socket: { ...address } }).on('error', () => {});
}
