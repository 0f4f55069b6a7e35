import { median } from 'simple-statistics';
import { type RedisServer, startRedis } from '../../support/redis';
import type { Address } from './candidate';
import { nodeRedis } from './clients';
import { CPU_SETS, pinTo } from './processes';

/** Totals of the server since its start. */
export interface ServerStats {
  /** Calls of each command, in scripts too. */
  readonly calls: ReadonlyMap<string, number>;
  /** ms of CPU */
  readonly cpu: number;
}

/** A private Redis for the bench, on loopback TCP. */
export type BenchServer = Awaited<ReturnType<typeof startServer>>;

export async function startServer() {
  const server = await startRedis({ port: true });
  pinTo(server.pid, CPU_SETS.server);
  const address = server.address as Address;
  const client = await nodeRedis(address);
  let replica: RedisServer | undefined;
  const stopReplica = async () => {
    await replica?.stop();
    replica = undefined;
  };
  return {
    address,
    name: `${server.name} ${server.version}`,
    /** Deletes all keys. Scripts stay cached: a candidate that has just connected may have loaded some. */
    clear: () => client.flushAll(),
    async stats(): Promise<ServerStats> {
      const info = await client.info('all');
      const calls = new Map<string, number>();
      // Without the subcommand: MONITOR prints it as an argument.
      for (const [, command = '', count] of info.matchAll(/^cmdstat_([^:|]+)[^:]*:calls=(\d+)/gm))
        calls.set(command, (calls.get(command) ?? 0) + Number(count));
      const seconds = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
      return { calls, cpu: (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1000 };
    },
    /** The value of every key, without its ttl. */
    async contents(): Promise<Map<string, string>> {
      const keys = await client.keys('*');
      const dumps = await Promise.all(keys.map((key) => client.dump(key)));
      return new Map(keys.map((key, i) => [key, String(dumps[i])]));
    },
    /** Resolves when a replica follows. It shares the CPUs of the candidates, as it has a machine of its own in production. */
    async startReplica(): Promise<void> {
      await client.configSet('repl-diskless-sync-delay', '0');
      replica = await startRedis({ port: true, args: ['--replicaof', `${address.host} ${address.port}`] });
      pinTo(replica.pid, CPU_SETS.clients);
      while ((await client.wait(1, 1_000)) < 1);
    },
    stopReplica,
    async stop(): Promise<void> {
      await stopReplica();
      client.destroy();
      await server.stop();
    },
  };
}

/** ms that a PING takes. */
export async function timeOfPing(address: Address): Promise<number> {
  const client = await nodeRedis(address);
  const times: number[] = [];
  for (let i = 0; i < 9; i++) {
    const startedAt = performance.now();
    await client.ping();
    times.push(performance.now() - startedAt);
  }
  client.destroy();
  return median(times);
}

/** Commands of the bench itself. */
const OWN = new Set(['info', 'monitor', 'flushall', 'script', 'keys', 'dump']);

/**
 * Redis counts the calls of each command, of scripts and clients together. MONITOR distinguishes them but is too slow to
 * run during a measurement. So it runs while a candidate warms up, until `during` settles, and determines which share of
 * the calls of each command is sent by clients: nearly always all or none. The result tells how many requests of clients
 * there were between two counts. A command that MONITOR has not shown counts as a client's.
 */
export async function monitored(address: Address, during: () => Promise<void>) {
  const seen = new Map<string, { clients: number; scripts: number }>();
  const client = await nodeRedis(address);
  // A line reads: 1700000000.123456 [0 127.0.0.1:5000] "SET" "key" …; the source of a call in a script is `lua`.
  await client.monitor((line) => {
    const [, source, name] = /^\S+ \[\d+ (\S+)\] "([^"]+)"/.exec(String(line)) ?? [];
    if (name === undefined) return;
    const calls = seen.get(name.toLowerCase()) ?? { clients: 0, scripts: 0 };
    calls[source === 'lua' ? 'scripts' : 'clients']++;
    seen.set(name.toLowerCase(), calls);
  });
  try {
    await during();
  } finally {
    client.destroy();
  }
  return (before: ServerStats, after: ServerStats): number => {
    let sum = 0;
    for (const [name, calls] of after.calls) {
      if (OWN.has(name)) continue;
      const { clients, scripts } = seen.get(name) ?? { clients: 1, scripts: 0 };
      sum += ((calls - (before.calls.get(name) ?? 0)) * clients) / (clients + scripts);
    }
    return sum;
  };
}
