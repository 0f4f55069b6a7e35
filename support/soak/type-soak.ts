import { createClient } from 'redis';
import type { Violation } from '../judge/violations';
import type { Random } from '../random';
import { type RedisServer, startRedis } from '../redis';
import { AwakeClock, sharedNow } from './awake-clock';
import { FaultJournal } from './faults/fault-journal';
import { FaultLanes } from './faults/fault-lanes';
import type { ServerTarget } from './faults/server-faults';
import { AS_NODE, SlotMover } from './faults/slot-mover';
import { Judge } from './judge/judge';
import { Leftovers } from './leftovers';
import { RecordFolder } from './record-folder';
import type { AdminClient } from './redis-content';
import { type SoakResult, Tally } from './results';
import { leftoversAfter, runRound } from './round';
import { movesSlots, SOAK_TYPES, type SoakExtra, type SoakType } from './settings';
import type { SocketAddress } from './worker/session';
import { WorkerSlot } from './worker-slot';

export interface TypeSoakOptions {
  readonly type: SoakType;
  readonly workers: number;
  /** ms of work under faults in each round. */
  readonly rounds: readonly number[];
  readonly random: Random;
  readonly extras: readonly SoakExtra[];
  readonly bundle: string;
  /** For the files of the workers; nothing else is in it. */
  readonly folder: string;
  /** Once aborted, no further round begins. */
  readonly ended?: AbortSignal | undefined;
}

/** The soak of one type, on a server of its own. It ends with the first round that finds a violation. */
export async function soakType(options: TypeSoakOptions): Promise<SoakResult> {
  const isReplicated = options.type === 'replicated';
  const hasReplica = isReplicated || options.extras.includes('listens at a replica');
  const isCluster = movesSlots(options.type, options.extras);
  const server = await startRedis({
    port: hasReplica || isCluster,
    args: ['--repl-diskless-sync-delay', '0', ...(isCluster ? AS_NODE : [])],
  });
  const second = isCluster ? await startRedis({ port: true, args: AS_NODE }) : undefined;
  const secondAdmin = second && (await connect(second));
  const replica = hasReplica ? await startReplica(server) : undefined;
  const admin = await connect(server);
  const clock = new AwakeClock();
  const slots: WorkerSlot[] = [];
  try {
    const mover =
      second && secondAdmin && (await SlotMover.start({ server, admin }, { server: second, admin: secondAdmin }));
    const node = isCluster ? (server.address as SocketAddress) : undefined;
    const leftovers = new Leftovers(admin);
    for (let index = 0; index < options.workers; index++) {
      const listensAt = index === 0 && options.extras.includes('listens at a replica') ? replica?.address : undefined;
      const slotSettings = { ...options, index, listensAt, node, clock, leftovers, random: options.random.fork() };
      slots.push(await WorkerSlot.open(server.address, slotSettings));
    }
    return await new TypeSoak(
      options,
      { server, replica: isReplicated ? replica : undefined, admin, mover },
      slots,
      leftovers,
      clock,
    ).run();
  } finally {
    for (const { process, proxy } of slots) {
      await process.kill();
      proxy.stop();
    }
    clock.stop();
    admin.destroy();
    secondAdmin?.destroy();
    await Promise.all([server, replica, second].map((one) => one?.stop()));
  }
}

class TypeSoak {
  readonly #options: TypeSoakOptions;
  readonly #slots: readonly WorkerSlot[];
  readonly #leftovers: Leftovers;
  readonly #clock: AwakeClock;
  readonly #admin: AdminClient;
  readonly #journal = new FaultJournal();
  readonly #lanes: FaultLanes;
  readonly #records: RecordFolder;
  readonly #tally = new Tally();
  readonly #judge: Judge;

  constructor(
    options: TypeSoakOptions,
    target: ServerTarget,
    slots: readonly WorkerSlot[],
    leftovers: Leftovers,
    clock: AwakeClock,
  ) {
    this.#options = options;
    this.#slots = slots;
    this.#leftovers = leftovers;
    this.#clock = clock;
    this.#admin = target.admin;
    const position = SOAK_TYPES.indexOf(options.type);
    this.#lanes = new FaultLanes(target, slots, this.#journal, options.random.fork(), position);
    this.#records = new RecordFolder(options.folder);
    this.#judge = new Judge(this.#journal, sharedNow());
  }

  async run(): Promise<SoakResult> {
    for (const ms of this.#options.rounds) {
      this.#judgeRound(await failureAsViolation(this.#round(ms)));
      if (this.#judge.violations.length > 0 || this.#options.ended?.aborted) break;
    }
    if (this.#judge.violations.length === 0) this.#judgeRound(await failureAsViolation(this.#finish()));
    const { type } = this.#options;
    const { violations } = this.#judge;
    return { ...this.#tally, type, faults: this.#journal.counts, violations };
  }

  async #round(ms: number): Promise<readonly Violation[]> {
    const services = {
      slots: this.#slots,
      lanes: this.#lanes,
      leftovers: this.#leftovers,
      clock: this.#clock,
      admin: this.#admin,
      random: this.#options.random,
      extras: this.#options.extras,
      deadPositionsBlock: this.#options.type === 'redisson-fair',
    };
    const { violations, inCalm } = await runRound(services, ms);
    this.#tally.rounds++;
    this.#tally.inCalm += inCalm;
    return violations;
  }

  /** Every worker closes its registry and its client, and then has to end by itself. */
  async #finish(): Promise<readonly Violation[]> {
    const ends = await Promise.all(
      this.#slots.map(async ({ name, process }): Promise<Violation[]> => {
        await process.ask({ do: 'finish' });
        const end = await process.end();
        if (end === 'exit code 0') return [];
        return [{ kind: 'does not end', text: `${name}: ${end ?? 'is still alive after close()'}`, at: sharedNow() }];
      }),
    );
    return [...ends.flat(), ...(await leftoversAfter(this.#leftovers, this.#clock))];
  }

  #judgeRound(violations: readonly Violation[]): void {
    const processes = this.#records.readOn();
    for (const records of processes) this.#tally.count(records);
    this.#judge.round(processes, violations);
  }
}

/** A worker that died or does not answer any more. */
async function failureAsViolation(found: Promise<readonly Violation[]>): Promise<readonly Violation[]> {
  return found.catch((error: unknown) => [{ kind: 'a worker fails', text: String(error), at: sharedNow() }]);
}

/** The address of the master is one of TCP: a replica cannot name a unix socket. */
async function startReplica({ address }: RedisServer): Promise<RedisServer> {
  const { host, port } = address as { readonly host: string; readonly port: number };
  return startRedis({ args: ['--replicaof', `${host} ${port}`] });
}

async function connect({ address }: RedisServer): Promise<AdminClient> {
  const client = createClient({ socket: address }) as AdminClient;
  client.on('error', () => {}); // a call fails with it
  await client.connect();
  return client;
}
