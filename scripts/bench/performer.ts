import { createClient } from 'redis';
import type { Address } from './candidates/candidate';
import { sleep } from './clock';
import { CommandSources } from './command-sources';
import type { LoadOrder } from './loads';
import type { Observation } from './loads/load';
import { type DelayProxy, startProxy, Worker } from './processes';
import type { BenchServer } from './server';

/** ms; long enough to be renewed by nobody while something else is measured. */
const TTL = 30_000;

/** ms in which every command has been sent. */
const LEARNING = 200;

/** What a candidate has to do. */
export interface Play {
  /** One process for each; they begin one after the other. */
  readonly orders: readonly LoadOrder[];
  /** ms */
  readonly warmUp: number;
  /** Of the warm-up, in which it is learnt who sends which commands: that slows everything down. */
  readonly learning?: number;
  readonly window: number;
  /** Into how many parts a round is divided, between which the others come in turn: where a load can stop and go on. */
  readonly slices?: number;
  readonly ttl?: number;
  /** ms that every byte is on its way between candidate and server, each way. */
  readonly delay?: number;
}

/** What was seen in one window. */
export interface Seen {
  readonly observations: readonly Observation[];
  /** s */
  readonly seconds: number;
  /** Requests of clients to the server, and ms of its CPU. */
  readonly requests: number;
  readonly serverCpu: number;
  /** Keys that were there at the beginning and are not at the end, or hold something else. */
  readonly keysLost: number;
  /** ms that a PING takes over the same way. */
  readonly ping: number;
}

/** A candidate in processes of its own. */
export class Performer {
  readonly #play: Play;
  readonly #server: BenchServer;
  readonly #sources: CommandSources;
  readonly #workers: readonly Worker[];
  readonly #proxy: DelayProxy | undefined;
  readonly #ping: number;

  /** Starts and connects it, no more. */
  static async open(candidate: string, play: Play, server: BenchServer): Promise<Performer> {
    const { delay, ttl = TTL } = play;
    const proxy = delay === undefined ? undefined : await startProxy(server.address, delay);
    const address = proxy?.address ?? server.address;
    const ping = proxy === undefined ? Number.NaN : await timeOfPing(address);
    const starting = play.orders.map(() => Worker.start(candidate, { address, ttl }));
    const started = (await Promise.allSettled(starting)).flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []));
    const performer = new Performer(play, server, started, proxy, ping);
    try {
      await Promise.all(starting);
      return performer;
    } catch (error) {
      await performer.end();
      throw error;
    }
  }

  private constructor(
    play: Play,
    server: BenchServer,
    workers: readonly Worker[],
    proxy: DelayProxy | undefined,
    ping: number,
  ) {
    this.#play = play;
    this.#server = server;
    this.#workers = workers;
    this.#proxy = proxy;
    this.#ping = ping;
    this.#sources = new CommandSources(server.address);
  }

  /** The beginning and the warm-up; meanwhile, at first, it is learnt who sends which commands. */
  async begin(): Promise<void> {
    const { orders, warmUp, learning = Math.min(warmUp, LEARNING) } = this.#play;
    const work = async (ms: number): Promise<void> => {
      if (ms > 0) await Promise.all(this.#workers.map((worker) => worker.observe(ms)));
    };
    await this.#sources.learn(async () => {
      for (const [i, order] of orders.entries()) await this.#workers[i]?.begin(order);
      await work(learning);
    });
    await work(warmUp - learning);
  }

  async observe(): Promise<Seen> {
    const contents = await this.#server.contents();
    const before = await this.#server.look();
    const observations = await Promise.all(this.#workers.map((worker) => worker.observe(this.#play.window)));
    const after = await this.#server.look();
    const left = await this.#server.contents();
    return {
      observations,
      seconds: Math.max(...observations.map(({ time }) => time)) / 1000,
      requests: this.#sources.requests(before.calls, after.calls),
      serverCpu: after.cpu - before.cpu,
      keysLost: [...contents].filter(([key, content]) => left.get(key) !== content).length,
      ping: this.#ping,
    };
  }

  async end(): Promise<void> {
    await Promise.all([...this.#workers, this.#proxy].map((process) => process?.end()));
  }
}

async function timeOfPing(address: Address): Promise<number> {
  const client = createClient({ socket: { ...address } }).on('error', () => {});
  await client.connect();
  const times: number[] = [];
  for (let i = 0; i < 9; i++) {
    const startedAt = performance.now();
    await client.ping();
    times.push(performance.now() - startedAt);
    await sleep(1);
  }
  client.destroy();
  return times.sort((a, b) => a - b)[4] as number;
}
