import { createClient } from 'redis';
import { acquired } from './acquisitions';
import type { Address, Candidate } from './candidates/candidate';
import { CandidateProcess, type DelayProxy, type ProfiledObservation, startProxy } from './child-processes';
import { sleep } from './clock';
import { CommandSources } from './command-sources';
import type { LoadSpec } from './loads';
import type { Observation } from './loads/load';
import { built } from './prepare';
import type { WarmUp } from './scenarios/warm-up';
import type { BenchServer, ServerStats } from './server';
import type { ProfileKind } from './worker';

/** ms; no lock needs a renewal while something else is measured. */
const TTL = 30_000;

/** ms of warm-up in which a candidate sends each of its commands at least once. */
const MONITORING = 200;

/** ms of warm-up between two looks at how often each process has acquired. */
const STEP = 1_000;

/** A JVM compiles what it runs often, in several steps: its warm-up takes that many times as long. */
const WARM_UP_OF_JAVA = 3;

/** What the processes of a candidate run in a scenario. */
export interface RunPlan {
  /** One process for each; they start one after the other. */
  readonly loads: readonly LoadSpec[];
  readonly warmUp: WarmUp;
  /** ms of the warm-up in which MONITOR attributes commands to clients or scripts; MONITOR slows everything down. */
  readonly monitoring?: number;
  /** ms */
  readonly window: number;
  /** Windows in a round. With more than one, all candidates run at the same time and are measured in alternation. */
  readonly slices?: number;
  readonly ttl?: number;
  /** The server has a replica. */
  readonly hasReplica?: boolean;
  /** ms of network delay between candidate and server, in each direction. */
  readonly delay?: number;
}

/** The raw figures of one window. */
export interface Measurement {
  readonly observations: readonly Observation[];
  /** s */
  readonly seconds: number;
  /** Client requests to the server. */
  readonly requests: number;
  /** ms of CPU of the server. */
  readonly serverCpu: number;
  /** Keys that disappeared or changed during the window. */
  readonly keysLost: number;
  /** What went through the server's sockets. */
  readonly traffic: ServerStats['traffic'];
  /** Its processes acquired less often during the warm-up than is enough. */
  readonly isCold: boolean;
  /** ms that a PING takes on the same connection path. */
  readonly ping: number;
}

/** A candidate that runs in its own processes. */
export class RunningCandidate {
  readonly #plan: RunPlan;
  readonly #server: BenchServer;
  readonly #sources: CommandSources;
  readonly #processes: readonly CandidateProcess[];
  readonly #proxy: DelayProxy | undefined;
  readonly #ping: number;
  #isCold = false;

  /** Starts and connects its processes, without a load. `library`: the build of ours. */
  static async open(
    candidate: Candidate,
    plan: RunPlan,
    server: BenchServer,
    library = built.library,
  ): Promise<RunningCandidate> {
    const { delay, ttl = TTL } = plan;
    const proxy = delay === undefined ? undefined : await startProxy(server.address, delay);
    const address = proxy?.address ?? server.address;
    const ping = proxy === undefined ? Number.NaN : await timeOfPing(address);
    const starting = plan.loads.map(() => CandidateProcess.start(candidate, { address, ttl, library }));
    const started = (await Promise.allSettled(starting)).flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []));
    const running = new RunningCandidate(warmedUp(plan, candidate), server, started, proxy, ping);
    try {
      await Promise.all(starting);
      return running;
    } catch (error) {
      await running.end();
      throw error;
    }
  }

  private constructor(
    plan: RunPlan,
    server: BenchServer,
    processes: readonly CandidateProcess[],
    proxy: DelayProxy | undefined,
    ping: number,
  ) {
    this.#plan = plan;
    this.#server = server;
    this.#processes = processes;
    this.#proxy = proxy;
    this.#ping = ping;
    this.#sources = new CommandSources(server.address);
  }

  /** Starts the loads and warms up. MONITOR runs during the first part. */
  async begin(): Promise<void> {
    const { loads, warmUp, monitoring = Math.min(warmUp.longest, MONITORING) } = this.#plan;
    await this.#sources.monitor(async () => {
      for (const [i, load] of loads.entries()) await this.#processes[i]?.begin(load);
      await this.#observe(monitoring, true);
    });
    await this.#warmUp(warmUp.longest - monitoring, warmUp.enough);
    await this.#observe(warmUp.settling ?? 0);
  }

  /** For `longest` ms at most, until each process has acquired `enough` times. */
  async #warmUp(longest: number, enough?: number): Promise<void> {
    const counts = this.#processes.map(() => 0);
    const isEnough = () => enough !== undefined && Math.min(...counts) >= enough;
    for (let left = longest; left > 0 && !isEnough(); left -= STEP) {
      const observations = await this.#observe(Math.min(left, STEP), true);
      for (const [i, observation] of observations.entries()) counts[i] = (counts[i] ?? 0) + acquired(observation);
    }
    this.#isCold = enough !== undefined && !isEnough();
  }

  async #observe(ms: number, isWarmUp = false): Promise<Observation[]> {
    return ms > 0 ? Promise.all(this.#processes.map((process) => process.observe(ms, isWarmUp))) : [];
  }

  async measure(): Promise<Measurement> {
    // A load without a window takes many locks, of which none can get lost.
    const contents = async () => (this.#plan.window > 0 ? this.#server.contents() : new Map<string, string>());
    const contentsBefore = await contents();
    const before = await this.#server.stats();
    const observations = await Promise.all(this.#processes.map((process) => process.observe(this.#plan.window)));
    const after = await this.#server.stats();
    const contentsAfter = await contents();
    return {
      observations,
      seconds: Math.max(...observations.map(({ time }) => time)) / 1000,
      requests: this.#sources.requests(before.calls, after.calls),
      serverCpu: after.cpu - before.cpu,
      traffic: {
        reads: after.traffic.reads - before.traffic.reads,
        received: after.traffic.received - before.traffic.received,
        sent: after.traffic.sent - before.traffic.sent,
      },
      keysLost: [...contentsBefore].filter(([key, content]) => contentsAfter.get(key) !== content).length,
      isCold: this.#isCold,
      ping: this.#ping,
    };
  }

  /** What all processes do in one window, by a profiler. Figures of `measure` are not of the same window. */
  async profile(kind: ProfileKind): Promise<ProfiledObservation[]> {
    return Promise.all(this.#processes.map((process) => process.profile(this.#plan.window, kind)));
  }

  async end(): Promise<void> {
    await Promise.all([...this.#processes, this.#proxy].map((process) => process?.end()));
  }
}

function warmedUp(plan: RunPlan, { language }: Candidate): RunPlan {
  if (language !== 'java') return plan;
  const { longest, enough, ...rest } = plan.warmUp;
  const more = enough && WARM_UP_OF_JAVA * enough;
  return { ...plan, warmUp: { ...rest, longest: WARM_UP_OF_JAVA * longest, enough: more } };
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
