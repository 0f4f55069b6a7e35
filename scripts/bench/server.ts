import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';
import { createClient } from 'redis';
import { type RedisServer, startRedis } from '../../support/redis';
import type { Address } from './candidate';

const lastCpu = cpus().length - 1;

/**
 * The server has one CPU for itself, as it has its own machine in production. Without this, the scheduler may or may not
 * put a client on the server's CPU, which changes a round trip on loopback by a factor of three.
 */
export const CPU_SETS = { server: '0', clients: lastCpu > 1 ? `1-${lastCpu}` : String(lastCpu) } as const;

/** Uses `taskset` of util-linux, where it is there and the machine has several CPUs. */
export function pinTo(pid: number | undefined, cpuSet: string): void {
  if (pid === undefined || lastCpu < 1) return;
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cpuSet, String(pid)], { stdio: 'ignore' });
}

/** Totals of the server since its start. */
export interface ServerStats {
  /** Calls of each command, in scripts too. */
  readonly calls: ReadonlyMap<string, number>;
  /** ms of CPU */
  readonly cpu: number;
}

function clientOf(address: Address) {
  return createClient({ socket: { ...address } }).on('error', () => {});
}

/** A private Redis for the bench, on loopback TCP. */
export class BenchServer {
  readonly address: Address;
  readonly name: string;
  readonly #server: RedisServer;
  readonly #client: ReturnType<typeof clientOf>;
  #replica: RedisServer | undefined;

  static async start(): Promise<BenchServer> {
    const server = await startRedis({ port: true });
    pinTo(server.pid, CPU_SETS.server);
    const client = clientOf(server.address as Address);
    await client.connect();
    return new BenchServer(server, client);
  }

  private constructor(server: RedisServer, client: ReturnType<typeof clientOf>) {
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
    const seconds = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
    return { calls, cpu: (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1000 };
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

/** ms that a PING takes. */
export async function timeOfPing(address: Address): Promise<number> {
  const client = clientOf(address);
  await client.connect();
  const times: number[] = [];
  for (let i = 0; i < 9; i++) {
    const startedAt = performance.now();
    await client.ping();
    times.push(performance.now() - startedAt);
  }
  client.destroy();
  return times.sort((a, b) => a - b)[4] as number;
}

/** Commands of the bench itself. */
const OWN = new Set(['info', 'monitor', 'flushall', 'script', 'keys', 'dump']);

/**
 * Redis counts the calls of each command, of scripts and clients together. MONITOR distinguishes them but is too slow to
 * run during a measurement. So it runs while a candidate warms up and determines which share of the calls of each command
 * is sent by clients: nearly always all or none.
 */
export class CommandSources {
  readonly #calls = new Map<string, { clients: number; scripts: number }>();

  /** Runs MONITOR until `during` settles. */
  async monitor(address: Address, during: () => Promise<void>): Promise<void> {
    const client = clientOf(address);
    await client.connect();
    await client.monitor((line) => this.#record(String(line)));
    try {
      await during();
    } finally {
      client.destroy();
    }
  }

  /** Client requests between two counts. A command that MONITOR has not shown counts as a client's. */
  requests(before: ServerStats, after: ServerStats): number {
    let sum = 0;
    for (const [name, calls] of after.calls) {
      if (OWN.has(name)) continue;
      const { clients, scripts } = this.#calls.get(name) ?? { clients: 1, scripts: 0 };
      sum += ((calls - (before.calls.get(name) ?? 0)) * clients) / (clients + scripts);
    }
    return sum;
  }

  /** A line reads: 1700000000.123456 [0 127.0.0.1:5000] "SET" "key" …; the source of a call in a script is `lua`. */
  #record(line: string): void {
    const [, source, name] = /^\S+ \[\d+ (\S+)\] "([^"]+)"/.exec(line) ?? [];
    if (name === undefined) return;
    const calls = this.#calls.get(name.toLowerCase()) ?? { clients: 0, scripts: 0 };
    calls[source === 'lua' ? 'scripts' : 'clients']++;
    this.#calls.set(name.toLowerCase(), calls);
  }
}
