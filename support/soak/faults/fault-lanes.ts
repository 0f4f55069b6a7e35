import { setTimeout as sleep } from 'node:timers/promises';
import { Mutex } from 'async-mutex';
import type { Random } from '../../random';
import { sharedNow } from '../awake-clock';
import { Bag } from '../bag';
import type { WorkerSlot } from '../worker-slot';
import type { FaultJournal } from './fault-journal';
import { SERVER_FAULTS, type ServerTarget, serverFaults } from './server-faults';
import type { SlotMover } from './slot-mover';
import { WORKER_FAULTS, type WorkerFaultKind, workerFaults } from './worker-faults';

interface Gap {
  readonly least: number;
  readonly most: number;
}

/** ms between two faults of one lane. Faults of the server stop everyone, and there must be time for work. */
const SERVER_GAP: Gap = { least: 200, most: 2_000 };
const WORKER_GAP: Gap = { least: 50, most: 1_500 };

interface Lane {
  readonly gap: Gap;
  readonly random: Random;
  readonly bag: Bag<string>;
}

/**
 * Inflicts faults: one after the other on each worker, and on the server, all of these at the same time. An orderly
 * restart of a registry has the server to itself, since whatever it then leaves in Redis has no excuse.
 */
export class FaultLanes {
  readonly #server: ServerTarget;
  readonly #slots: readonly WorkerSlot[];
  readonly #journal: FaultJournal;
  readonly #random: Random;
  readonly #serverTurn = new Mutex();
  readonly #serverLane: Lane;
  readonly #workerLanes: readonly Lane[];

  /** `position`: that of the type among all types. Each begins with other faults, so a short soak of all has each fault. */
  constructor(
    server: ServerTarget,
    slots: readonly WorkerSlot[],
    journal: FaultJournal,
    random: Random,
    position: number,
  ) {
    this.#server = server;
    this.#slots = slots;
    this.#journal = journal;
    this.#random = random;
    const lane = (gap: Gap, kinds: readonly string[], first: number): Lane => {
      const own = random.fork();
      return { gap, random: own, bag: new Bag(kinds, own, first) };
    };
    this.#serverLane = lane(SERVER_GAP, SERVER_FAULTS, position);
    // Kills are given out by `inflict`: one in each round, since what it leaves behind is excused and could hide a leak.
    this.#workerLanes = slots.map((_slot, i) =>
      lane(
        WORKER_GAP,
        WORKER_FAULTS.filter((kind) => kind !== 'kill -9'),
        position * slots.length + i,
      ),
    );
  }

  /** Until `end` on the shared clock; resolves when the last fault is over. One worker is killed at the beginning. */
  async inflict(end: number): Promise<void> {
    const { mover } = this.#server;
    // Nothing else happens then, so that nothing else can explain a loss.
    if (mover !== undefined) return this.#moveSlots(mover, end);
    const victim = this.#random.whole(0, this.#slots.length - 1);
    await Promise.all([
      this.#follow(this.#serverLane, end, (kind) => this.#strikeServer(kind as keyof typeof serverFaults)),
      ...this.#workerLanes.map(async (lane, i) => {
        const slot = this.#slots[i] as WorkerSlot;
        if (i === victim) {
          await sleep(lane.random.whole(WORKER_GAP.least, WORKER_GAP.most));
          await this.#strikeWorker(slot, 'kill -9', lane.random);
        }
        await this.#follow(lane, end, (kind) => this.#strikeWorker(slot, kind as WorkerFaultKind, lane.random));
      }),
    ]);
  }

  async #follow({ bag, gap, random }: Lane, end: number, strike: (kind: string) => Promise<void>): Promise<void> {
    for (;;) {
      await sleep(random.whole(gap.least, gap.most));
      if (sharedNow() >= end) return;
      await strike(bag.draw());
    }
  }

  async #moveSlots(mover: SlotMover, end: number): Promise<void> {
    for (;;) {
      await sleep(this.#random.whole(WORKER_GAP.least, WORKER_GAP.most));
      if (sharedNow() >= end) return;
      const entry = this.#journal.begin('slot move', 'server');
      await mover.move(this.#random);
      this.#journal.end(entry);
    }
  }

  async #strikeServer(kind: keyof typeof serverFaults): Promise<void> {
    await this.#serverTurn.runExclusive(async () => {
      const entry = this.#journal.begin(kind, 'server');
      await serverFaults[kind](this.#server, this.#serverLane.random);
      this.#journal.end(entry);
    });
  }

  async #strikeWorker(slot: WorkerSlot, kind: WorkerFaultKind, random: Random): Promise<void> {
    const strike = async () => {
      const entry = this.#journal.begin(kind, slot.name);
      await workerFaults[kind](slot, random);
      this.#journal.end(entry);
    };
    if (kind === 'close and restart') await this.#serverTurn.runExclusive(strike);
    else await strike();
  }
}
