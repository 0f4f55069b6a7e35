import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseRecords, type WorkerRecord } from '../judge/records';
import { FaultyProxy } from '../proxy';
import type { Random } from '../random';
import type { RedisAddress } from '../redis';
import { type AwakeClock, sharedNow } from './awake-clock';
import type { Leftovers } from './leftovers';
import { HEALTHY, lockTypeOf, type SoakExtra, type SoakType } from './settings';
import { keysLeftInGrace, unfinishedKeys } from './unfinished-keys';
import type { SocketAddress } from './worker/session';
import { WorkerProcess } from './worker-process';

export interface SlotSettings {
  readonly type: SoakType;
  readonly index: number;
  readonly extras: readonly SoakExtra[];
  /** Where its registry gets messages from; `undefined`: over its client. */
  readonly listensAt: RedisAddress | undefined;
  /** A node of a cluster, which names its own address to clients: they find it without the proxy. */
  readonly node: SocketAddress | undefined;
  readonly bundle: string;
  readonly folder: string;
  readonly random: Random;
  readonly clock: AwakeClock;
  readonly leftovers: Leftovers;
}

/** One worker: its network, and the processes that follow one another behind it. */
export class WorkerSlot {
  readonly proxy: FaultyProxy;
  readonly name: string;
  process!: WorkerProcess;
  readonly #settings: SlotSettings;
  #generation = 0;

  static async open(target: RedisAddress, settings: SlotSettings): Promise<WorkerSlot> {
    const slot = new WorkerSlot(await FaultyProxy.start(target), settings);
    slot.proxy.delay = HEALTHY;
    await slot.#start();
    return slot;
  }

  private constructor(proxy: FaultyProxy, settings: SlotSettings) {
    this.proxy = proxy;
    this.#settings = settings;
    this.name = `${settings.type}-${settings.index}`;
  }

  /** Kill -9, and another process in its place. */
  async kill(): Promise<void> {
    await this.process.kill();
    await this.#settings.leftovers.excuse(unfinishedKeys(this.#records(), sharedNow()));
    await this.#start();
    await this.process.ask({ do: 'resume' });
  }

  /** `close()` and `client.destroy()` as an application ends, then a registry and a client anew. */
  async restartRegistry(closeTimeout: number): Promise<void> {
    const { closedKeys } = await this.process.ask({ do: 'restart', closeTimeout });
    const keys = [...closedKeys, ...keysLeftInGrace(this.#records(), sharedNow())];
    if (keys.length > 0) await this.#settings.leftovers.excuse(keys, this.process.settings.name);
  }

  #records(): WorkerRecord[] {
    return parseRecords(readFileSync(this.process.settings.recordFile, 'utf8'));
  }

  async #start(): Promise<void> {
    const { type, index, extras, listensAt, node, bundle, folder, random, clock } = this.#settings;
    const name = `${this.name}.${this.#generation++}`;
    const settings = {
      name,
      address: node ?? this.proxy.address,
      extras,
      ...(listensAt === undefined ? {} : { listensAt }),
      isCluster: node !== undefined,
      type,
      lockType: lockTypeOf(type, index),
      seed: random.whole(0, 2 ** 31 - 1),
      recordFile: join(folder, `${name}.jsonl`),
    };
    this.process = await WorkerProcess.start(bundle, settings, clock);
  }
}
