import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { FaultyProxy } from '../../../support/proxy';
import { type RedisServer, startRedis } from '../../../support/redis';

type Node = Awaited<ReturnType<typeof start>>;

async function start(...args: string[]) {
  // Over TCP, as the proxies that are before it.
  const settings = ['--maxmemory-policy', 'noeviction', '--repl-diskless-sync-delay', '0', ...args];
  const server = await startRedis({ port: true, args: settings });
  const admin = createClient({ socket: server.address });
  admin.on('error', () => undefined);
  await admin.connect();
  return { server, admin };
}

/** A Redis with a replica that takes its place in a failover, at the same address for its clients. */
export class Pair {
  #master: Node;
  #replica: { readonly node: Node; readonly link: FaultyProxy } | undefined;

  static async start(): Promise<Pair> {
    const pair = new Pair(await start());
    await pair.#replicate();
    return pair;
  }

  private constructor(master: Node) {
    this.#master = master;
  }

  get server(): RedisServer {
    return this.#master.server;
  }

  command(...words: string[]): Promise<unknown> {
    return this.#master.admin.sendCommand(words);
  }

  /** The master dies, and its replica lacks what was written in the last `lag` ms. `proxies`: before the clients. */
  async failOver(lag: number, proxies: readonly FaultyProxy[]): Promise<void> {
    if (this.#replica === undefined) return;
    const { node, link } = this.#replica;
    link.blackHole = true;
    await sleep(lag);
    await this.#end(this.#master);
    link.stop();
    await node.admin.sendCommand(['REPLICAOF', 'NO', 'ONE']);
    this.#master = node;
    for (const proxy of proxies) {
      proxy.target = node.server.address;
      proxy.reset();
    }
    await this.#replicate();
  }

  async stop(): Promise<void> {
    this.#replica?.link.stop();
    await Promise.all([this.#master, ...(this.#replica ? [this.#replica.node] : [])].map((node) => this.#end(node)));
  }

  async #replicate(): Promise<void> {
    const link = await FaultyProxy.start(this.server.address);
    const node = await start('--replicaof', link.address.host, String(link.address.port));
    this.#replica = { node, link };
    while (!String(await node.admin.sendCommand(['INFO', 'replication'])).includes('master_link_status:up'))
      await sleep(20);
  }

  async #end({ server, admin }: Node): Promise<void> {
    admin.destroy();
    server.kill('SIGKILL');
    await server.stop();
  }
}
