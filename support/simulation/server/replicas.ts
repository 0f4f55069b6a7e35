import type { Timeline } from '../timeline';

/** ms until a replica has a write. */
const USUAL = 0.3;

/** What befalls a replica. From then until then it has each write `lag` ms later; Infinity: it is away. */
export interface ReplicaTrouble {
  readonly from: number;
  readonly until: number;
  readonly lag: number;
}

/** The replicas of the server, as far as WAIT tells: each has a trouble of its own, and all writes when that is over. */
export class Replicas {
  readonly #timeline: Timeline;
  readonly #troubles: readonly ReplicaTrouble[];

  constructor(timeline: Timeline, troubles: readonly ReplicaTrouble[]) {
    this.#timeline = timeline;
    this.#troubles = troubles;
  }

  /** How many have what was written then. */
  having(writtenAt: number): number {
    const { now } = this.#timeline;
    return this.#troubles.filter((one) => hasAt(one, writtenAt) <= now).length;
  }

  /** What WAIT counts: those that are connected. */
  acknowledging(writtenAt: number): number {
    const { now } = this.#timeline;
    const isAway = ({ from, until, lag }: ReplicaTrouble): boolean => !(lag < 1e9) && from <= now && now < until;
    return this.#troubles.filter((one) => hasAt(one, writtenAt) <= now && !isAway(one)).length;
  }

  /** Too few may have what is written now. */
  get areInTrouble(): boolean {
    return this.#troubles.some(({ from, until }) => from <= this.#timeline.now && this.#timeline.now <= until + 1);
  }
}

function hasAt({ from, until, lag }: ReplicaTrouble, writtenAt: number): number {
  const isLate = from <= writtenAt && writtenAt < until;
  return isLate ? Math.min(writtenAt + lag, until + USUAL) : writtenAt + USUAL;
}
