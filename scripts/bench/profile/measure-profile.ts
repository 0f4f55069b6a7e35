import { median, sum } from 'simple-statistics';
import { acquired } from '../acquisitions';
import { candidates } from '../candidates';
import type { Candidate } from '../candidates/candidate';
import { CandidateFault } from '../child-processes';
import type { HeapPart } from '../loads/held-parts';
import type { Observation } from '../loads/load';
import type { Options } from '../options';
import { buildMappedLibrary, built } from '../prepare';
import { RunningCandidate } from '../running-candidate';
import { isNamed } from '../scenarios/scenario';
import type { BenchServer } from '../server';
import type { ProfileKind } from '../worker';
import { Shares } from './frame-tree';
import { Sources } from './sources';
import { BURST, CPU_SUBJECTS, candidatesOf, HELD, planOf, SUBJECTS, type Subject } from './subjects';

/** What one cycle or acquisition costs one candidate. */
export interface Cost {
  readonly candidate: Candidate;
  /** By id of a figure, medians of all rounds; µs and bytes. Measured without a profiler. */
  readonly figures: Readonly<Record<string, number>>;
  /** Of all rounds: samples of CPU time, or bytes that were allocated. */
  readonly shares: Shares;
  /** Of a held lock. */
  readonly parts: readonly HeapPart[];
}

export interface Profile {
  readonly subject: Subject;
  readonly costs: readonly Cost[];
}

/** Notified of the progress of a run. */
export interface ProfileListener {
  print(text: string): void;
  printProfile(profile: Profile): void;
}

/** ms; `samples`: of CPU time in each round, for which a busy machine needs several windows. */
const FULL = { window: 1_500, samples: 1_000 };
const QUICK = { window: 500, samples: 200 };

const MOST_WINDOWS = 8;

/** Takes the loads of the targets apart, each candidate in processes of its own. */
export async function measureProfiles(
  server: BenchServer,
  { quick, rounds, only, scenarios }: Options,
  progress: ProfileListener,
): Promise<Profile[]> {
  buildMappedLibrary();
  const sources = new Sources(built.worker, built.mappedLibrary);
  const isSelected = (subject: Subject) => scenarios.length === 0 || scenarios.some((name) => isNamed(subject, name));
  const profiles: Profile[] = [];
  for (const subject of SUBJECTS.filter(isSelected)) {
    const costs = participants(subject, only).map((candidate) => new MeasuredCost(candidate, sources));
    for (let round = 0; round < (subject === HELD ? 1 : rounds); round++) {
      for (const cost of costs) {
        progress.print(`${subject.id.padEnd(3)} ${round + 1}/${rounds}  ${cost.candidate.title}`);
        await server.clear();
        try {
          await cost.measureRound(server, subject, quick ? QUICK : FULL);
        } catch (error) {
          if (!(error instanceof CandidateFault)) throw error;
          progress.print(`not measured: ${error.message}`);
        }
      }
    }
    const profile = { subject, costs: costs.filter(({ isMeasured }) => isMeasured) };
    progress.printProfile(profile);
    profiles.push(profile);
  }
  return profiles;
}

class MeasuredCost implements Cost {
  readonly candidate: Candidate;
  readonly shares = new Shares();
  parts: readonly HeapPart[] = [];
  readonly #sources: Sources;
  readonly #rounds: Record<string, number>[] = [];

  constructor(candidate: Candidate, sources: Sources) {
    this.candidate = candidate;
    this.#sources = sources;
  }

  get figures(): Record<string, number> {
    const ids = Object.keys(this.#rounds[0] ?? {});
    return Object.fromEntries(ids.map((id) => [id, median(this.#rounds.map((round) => round[id] ?? Number.NaN))]));
  }

  get isMeasured(): boolean {
    return this.#rounds.length > 0;
  }

  /** One round, in new processes. Rejects with a `CandidateFault` if the candidate cannot run the load. */
  async measureRound(server: BenchServer, subject: Subject, size: typeof FULL): Promise<void> {
    const running = await RunningCandidate.open(
      this.candidate,
      planOf(subject, size.window, size === QUICK),
      server,
      built.mappedLibrary,
    );
    try {
      await running.begin();
      await this.#measure(running, subject, size);
    } finally {
      await running.end();
    }
  }

  /** The profile and the figures are both of code that is compiled, except with --quick. */
  async #measure(running: RunningCandidate, subject: Subject, { samples }: typeof FULL): Promise<void> {
    const figures: Record<string, number> = {};
    if (subject === BURST) figures.allocated = (await this.#profile(running, 'allocations')) / countOf(subject, []);
    if (CPU_SUBJECTS.includes(subject)) {
      let taken = 0;
      for (let window = 0; taken < samples && window < MOST_WINDOWS; window++)
        taken += await this.#profile(running, 'cpu');
    }
    const { observations, requests, serverCpu, traffic } = await running.measure();
    const count = countOf(subject, observations);
    const sumOf = (figure: (observation: Observation) => number | undefined) =>
      sum(observations.map((observation) => figure(observation) ?? Number.NaN)) / count;
    this.#rounds.push({
      ...figures,
      cpu: sumOf(({ cpu }) => cpu) * 1000,
      kernel: sumOf(({ kernel }) => kernel) * 1000,
      sleeps: sumOf(({ sleeps }) => sleeps),
      server: (serverCpu / count) * 1000,
      requests: requests / count,
      reads: traffic.reads / count,
      sent: traffic.received / count,
      received: traffic.sent / count,
      ...observations[0]?.heap,
    });
    this.parts = observations[0]?.parts ?? [];
  }

  /** Returns how many samples, or bytes, one window had. */
  async #profile(running: RunningCandidate, kind: ProfileKind): Promise<number> {
    const before = this.shares.total;
    for (const { profile } of await running.profile(kind)) this.shares.add(profile, (frame) => this.#sources.of(frame));
    return this.shares.total - before;
  }
}

function participants(subject: Subject, only: readonly string[]): Candidate[] {
  return candidatesOf(subject)
    .filter((id) => only.length === 0 || only.includes(id) || subject.floors.includes(id))
    .map((id) => candidates.find((candidate) => candidate.id === id) as Candidate);
}

/** Cycles, or acquisitions that were granted. */
function countOf({ loads: [load] }: Subject, observations: readonly Observation[]): number {
  if (load?.load === 'burst' || load?.load === 'heldParts') return load.settings.locks;
  return sum(observations.map(acquired));
}
