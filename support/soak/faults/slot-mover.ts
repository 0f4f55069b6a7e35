import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../random';
import type { RedisServer } from '../../redis';
import type { AdminClient } from '../redis-content';
import { CALM_KEY, KEYS, REGISTRY_KEY } from '../settings';

/** With these a server is a node of a cluster. */
export const AS_NODE = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '30000'];

const SLOTS = 16_384;
/** Slots of the second node: clients learn the addresses of nodes that have some. */
const ITS_SLOTS = 1_000;

/** ms from when the slot is open until its first key moves, and between two keys. A key that is deleted meanwhile counts as moved. */
const OPEN_FOR = { least: 50, most: 250 };
const PAUSE = { least: 0, most: 60 };

/** ms between two looks whether both nodes know whose the slot is. */
const SETTLES_WITHIN = 20;

interface ClusterNode {
  readonly server: RedisServer;
  readonly admin: AdminClient;
  readonly id: string;
}

/** Moves the locks of one key to another node and back, key by key: in between some are here, and some there. */
export class SlotMover {
  readonly #first: ClusterNode;
  readonly #second: ClusterNode;

  /** Makes a cluster of two nodes that are empty: all locks of the soak are on the first. */
  static async start(first: Omit<ClusterNode, 'id'>, second: Omit<ClusterNode, 'id'>): Promise<SlotMover> {
    const of = async (node: Omit<ClusterNode, 'id'>) => ({ ...node, id: await ask(node, 'MYID') });
    const mover = new SlotMover(await of(first), await of(second));
    await mover.#form();
    return mover;
  }

  private constructor(first: ClusterNode, second: ClusterNode) {
    this.#first = first;
    this.#second = second;
  }

  async move(random: Random): Promise<void> {
    const key = random.pick(KEYS);
    const slot = await slotOf(this.#first, key);
    const [one, other] = [this.#first, this.#second];
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      await ask(to, 'SETSLOT', slot, 'IMPORTING', from.id);
      await ask(from, 'SETSLOT', slot, 'MIGRATING', to.id);
      const { host, port } = addressOf(to);
      await sleep(random.whole(OPEN_FOR.least, OPEN_FOR.most));
      for (;;) {
        const [name] = (await from.admin.sendCommand(['CLUSTER', 'GETKEYSINSLOT', slot, '1'])) as unknown as string[];
        if (name === undefined) break;
        await from.admin.sendCommand(['MIGRATE', host, port, name, '0', '1000']);
        await sleep(random.whole(PAUSE.least, PAUSE.most));
      }
      // What one has said of it before may arrive at the other one later.
      do {
        for (const node of [to, from]) await ask(node, 'SETSLOT', slot, 'NODE', to.id);
        await sleep(SETTLES_WITHIN);
      } while (!(await owns(to, key)) || (await owns(from, key)));
    }
  }

  async #form(): Promise<void> {
    const [first, second] = [this.#first, this.#second];
    const used = await Promise.all([...KEYS, CALM_KEY].map(async (key) => Number(await slotOf(first, key))));
    const isTheirs = (slot: number) => used.some((one) => one >= slot && one < slot + ITS_SLOTS);
    let begin = 0;
    while (isTheirs(begin)) begin++;
    const its = Array.from({ length: ITS_SLOTS }, (_, i) => begin + i);
    const others = Array.from({ length: SLOTS }, (_, i) => i).filter((slot) => !its.includes(slot));
    await ask(first, 'ADDSLOTS', ...others.map(String));
    await ask(second, 'ADDSLOTS', ...its.map(String));
    await ask(first, 'SET-CONFIG-EPOCH', '1');
    await ask(second, 'SET-CONFIG-EPOCH', '2');
    const { host, port } = addressOf(second);
    await ask(first, 'MEET', host, port);
    for (const node of [first, second]) {
      while (!/cluster_state:ok[\s\S]*cluster_size:2/.test(await ask(node, 'INFO'))) await sleep(50);
    }
  }
}

async function ask({ admin }: Pick<ClusterNode, 'admin'>, ...words: string[]): Promise<string> {
  return String(await admin.sendCommand(['CLUSTER', ...words]));
}

/** Otherwise it names another node, and not its data. */
const owns = ({ admin }: ClusterNode, key: string): Promise<boolean> =>
  admin.exists(`${REGISTRY_KEY}:${key}`).then(
    () => true,
    () => false,
  );

const slotOf = (node: ClusterNode, key: string) => ask(node, 'KEYSLOT', `${REGISTRY_KEY}:${key}`);

function addressOf({ server }: ClusterNode): { readonly host: string; readonly port: string } {
  const { host, port } = server.address as { readonly host: string; readonly port: number };
  return { host, port: String(port) };
}
