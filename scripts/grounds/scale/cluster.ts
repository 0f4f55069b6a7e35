import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { ownServer, Server, type ServerCommand } from '../server';

const SLOTS = 16_384;
/** Keys that are moved by one command. */
const AT_ONCE = 100;

const connect = (url: string) =>
  createClient({ url })
    .on('error', () => undefined)
    .connect();

type Node = { readonly server: Server; readonly client: Awaited<ReturnType<typeof connect>>; readonly id: string };

/** Masters that share all slots, without replicas. */
export class Masters {
  readonly #nodes: readonly Node[];
  readonly #owners: number[];
  #isMoving = false;
  /** Slots that have moved. */
  moved = 0;

  private constructor(nodes: readonly Node[], owners: number[]) {
    this.#nodes = nodes;
    this.#owners = owners;
  }

  static async start(size: number): Promise<Masters> {
    const own = ownServer();
    const command: ServerCommand = (port, folder) => [...own(port, folder), '--cluster-enabled', 'yes'];
    const nodes: Node[] = [];
    for (let i = 0; i < size; i++) {
      const server = await Server.start(command);
      const client = await connect(server.url);
      nodes.push({ server, client, id: await client.clusterMyId() });
    }
    const owners = Array.from({ length: SLOTS }, (_, slot) => Math.floor((slot * size) / SLOTS));
    for (const [i, { client, server }] of nodes.entries()) {
      const first = owners.indexOf(i);
      await client.sendCommand(['CLUSTER', 'ADDSLOTSRANGE', `${first}`, `${owners.lastIndexOf(i)}`]);
      if (i > 0) await nodes[0]?.client.clusterMeet('127.0.0.1', server.port);
    }
    const masters = new Masters(nodes, owners);
    for (let tries = 0; !(await masters.#isWhole()); tries++) {
      if (tries === 300) throw new Error('the cluster does not become whole within 30 s');
      await sleep(100);
    }
    return masters;
  }

  get ports(): number[] {
    return this.#nodes.map(({ server }) => server.port);
  }

  /** Moves slots, one after the other, until `stop`. */
  async keepMoving(pause: number): Promise<void> {
    this.#isMoving = true;
    while (this.#isMoving) {
      await this.#move(Math.floor(Math.random() * SLOTS));
      await sleep(pause);
    }
  }

  stopMoving(): void {
    this.#isMoving = false;
  }

  /** Scripts that were called, and ms of the processor, since the servers started. */
  async usage(): Promise<{ scripts: number; cpu: number }> {
    const usage = { scripts: 0, cpu: 0 };
    for (const { client } of this.#nodes) {
      const [commands, cpu] = [await client.info('commandstats'), await client.info('cpu')];
      for (const [, calls] of commands.matchAll(/cmdstat_(?:eval|evalsha):calls=(\d+)/g))
        usage.scripts += Number(calls);
      for (const [, seconds] of cpu.matchAll(/used_cpu_(?:sys|user):([\d.]+)/g)) usage.cpu += Number(seconds) * 1_000;
    }
    return usage;
  }

  async flush(): Promise<void> {
    for (const { client } of this.#nodes) await client.flushAll();
  }

  async stop(): Promise<void> {
    this.stopMoving();
    for (const { client, server } of this.#nodes) {
      client.destroy();
      await server.stop();
    }
  }

  async #isWhole(): Promise<boolean> {
    const infos = await Promise.all(this.#nodes.map(({ client }) => client.clusterInfo()));
    return infos.every(
      (info) => info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${infos.length}`),
    );
  }

  /** Key by key, as `redis-cli --cluster reshard` does it. */
  async #move(slot: number): Promise<void> {
    const size = this.#nodes.length;
    const owner = this.#owners[slot] ?? 0;
    const next = (owner + 1 + Math.floor(Math.random() * (size - 1))) % size;
    const [source, target] = [this.#nodes[owner], this.#nodes[next]] as [Node, Node];
    const setSlot = (node: Node, ...words: string[]) =>
      node.client.sendCommand(['CLUSTER', 'SETSLOT', `${slot}`, ...words]);
    await setSlot(target, 'IMPORTING', source.id);
    await setSlot(source, 'MIGRATING', target.id);
    for (;;) {
      const keys = await source.client.clusterGetKeysInSlot(slot, AT_ONCE);
      if (keys.length === 0) break;
      await source.client.sendCommand([
        'MIGRATE',
        '127.0.0.1',
        `${target.server.port}`,
        '',
        '0',
        '5000',
        'KEYS',
        ...keys,
      ]);
    }
    for (const node of [target, source, ...this.#nodes]) await setSlot(node, 'NODE', target.id);
    this.#owners[slot] = next;
    this.moved++;
  }
}
