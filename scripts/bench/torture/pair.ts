import { setTimeout as sleep } from 'node:timers/promises';
import { FaultyProxy } from '../../../support/proxy';
import { type RedisServer, startRedis } from '../../../support/redis';
import type { Address } from '../candidate';
import { nodeRedis } from '../clients';

type Node = Awaited<ReturnType<typeof start>>;

async function start(...args: string[]) {
  // Over TCP, as the proxies that are before it.
  const settings = ['--maxmemory-policy', 'noeviction', '--repl-diskless-sync-delay', '0', ...args];
  const server = await startRedis({ port: true, args: settings });
  return { server, admin: await nodeRedis(server.address as Address) };
}

async function end({ server, admin }: Node): Promise<void> {
  admin.destroy();
  server.kill('SIGKILL');
  await server.stop();
}

/** A Redis with a replica that takes its place in a failover, at the same address for its clients. */
export class Pair {
  #master!: Node;
  #replica!: Node;
  /** Between them. */
  #link!: FaultyProxy;

  static async start(): Promise<Pair> {
    const pair = new Pair();
    pair.#master = await start();
    await pair.#replicate();
    return pair;
  }

  get server(): RedisServer {
    return this.#master.server;
  }

  command(...words: string[]): Promise<unknown> {
    return this.#master.admin.sendCommand(words);
  }

  /** The master dies, and its replica lacks what was written in the last `lag` ms. `proxies`: before the clients. */
  async failOver(lag: number, proxies: readonly FaultyProxy[]): Promise<void> {
    this.#link.blackHole = true;
    await sleep(lag);
    await end(this.#master);
    this.#link.stop();
    this.#master = this.#replica;
    await this.command('REPLICAOF', 'NO', 'ONE');
    for (const proxy of proxies) {
      proxy.target = this.server.address;
      proxy.reset();
    }
    await this.#replicate();
  }

  async stop(): Promise<void> {
    this.#link.stop();
    await Promise.all([end(this.#master), end(this.#replica)]);
  }

  async #replicate(): Promise<void> {
    this.#link = await FaultyProxy.start(this.server.address);
    const { host, port } = this.#link.address;
    this.#replica = await start('--replicaof', host, String(port));
    while (!String(await this.#replica.admin.info('replication')).includes('master_link_status:up')) await sleep(20);
  }
}
