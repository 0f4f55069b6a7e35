import type { Random } from '../random';
import type { CutMode } from './client/connection';

/** Which connections of a process a fault concerns. */
export type Target = 'commands' | 'subscriber' | 'all';

/** Of an acquisition. */
export const MOMENTS = ['call', 'lease', 'unlock'] as const;

export type Moment = (typeof MOMENTS)[number];

interface OfProcess {
  readonly at: number;
  readonly process: number;
}

/** What happens to the system at a time. Times and durations in ms. */
export type Fault =
  | (OfProcess & { readonly kind: 'cut'; readonly target: Target; readonly mode: CutMode })
  | (OfProcess & {
      readonly kind: 'slow';
      readonly target: Target;
      readonly direction: 'up' | 'down' | 'both';
      readonly extra: number;
      readonly duration: number;
      /** And then it breaks. */
      readonly endsWith: CutMode | undefined;
    })
  | (OfProcess & { readonly kind: 'hold'; readonly target: Target; readonly duration: number })
  | (OfProcess & { readonly kind: 'pause' | 'suspend'; readonly duration: number })
  | (OfProcess & { readonly kind: 'kill'; readonly isSilent: boolean })
  | (OfProcess & { readonly kind: 'wall clock'; readonly step: number })
  | (OfProcess & { readonly kind: 'evict' })
  | (OfProcess & { readonly kind: 'close'; readonly timeout: number })
  /** The application's client is closed, or gives up to reconnect. After `duration` it is connected again. */
  | (OfProcess & {
      readonly kind: 'reopen';
      readonly how: 'destroy' | 'destroy in an outage' | 'give up';
      readonly duration: number;
    })
  /** The server answers its scripts, or its SUBSCRIBE, with this error. */
  | (OfProcess & {
      readonly kind: 'refuse';
      readonly duration: number;
      readonly error: string;
      readonly command: 'EVAL' | 'SUBSCRIBE';
    })
  /**
   * The connections for messages only look alive: the server may not count them, and messages may not arrive. `answers`:
   * commands do, and new connections are the same: they lead to a replica. In the end the client notices.
   */
  | (OfProcess & {
      readonly kind: 'half open';
      readonly duration: number;
      readonly isCounted: boolean;
      readonly hears: boolean;
      readonly answers: boolean;
    })
  /** Unlocks by force, whoever has it. */
  | (OfProcess & { readonly kind: 'force'; readonly key: string })
  | { readonly at: number; readonly kind: 'restart'; readonly duration: number; readonly losesData: boolean }
  | { readonly at: number; readonly kind: 'freeze'; readonly duration: number }
  /** The server is frozen, another one takes its place after `promotion` ms, of which some learn then, and it wakes up. */
  | {
      readonly at: number;
      readonly kind: 'replace';
      readonly duration: number;
      readonly promotion: number;
      /** Processes. */
      readonly early: readonly number[];
    }
  /** All keys move to another node of a cluster, one every `pause` ms. `text`: the error of a script that uses a key which is gone. */
  | { readonly at: number; readonly kind: 'slot move'; readonly pause: number; readonly text: string }
  | { readonly at: number; readonly kind: 'flush scripts' }
  /** The clock of the server is set back. */
  | { readonly at: number; readonly kind: 'server clock'; readonly ms: number }
  | { readonly at: number; readonly kind: 'delete'; readonly key: string }
  /** `which` of the keys beside that of the lock: from 0 up to below 1. */
  | { readonly at: number; readonly kind: 'delete companion'; readonly key: string; readonly which: number };

/** ms in which faults begin. */
const SPAN = 6_000;

export interface FaultScale {
  readonly processes: number;
  readonly keys: readonly string[];
  readonly isCalm: boolean;
  readonly clockTrouble: 'suspend' | 'wall clock';
}

/** The faults of a seed, in the order of their times. A calm one has evictions and closings only. */
export function planFaults(random: Random, scale: FaultScale): Fault[] {
  const evictions = random.pick([0, 2, 30]);
  const faults = Array.from(
    { length: evictions },
    (): Fault => ({ kind: 'evict', at: random.between(0, SPAN), process: random.whole(0, scale.processes - 1) }),
  );
  if (random.chance(0.35)) faults.push(planClosing(random, scale));
  if (!scale.isCalm) {
    const count = random.pick([1, 1, 2, 2, 3, 4, 6, 8]);
    for (let i = 0; i < count; i++) faults.push(planFault(random, scale));
  }
  return faults.sort((a, b) => a.at - b.at);
}

/** Redis cannot be reached, or does not answer, for minutes. */
export type LongOutage = Extract<Fault, { kind: 'restart' | 'freeze' }>;

export function planOutage(random: Random): LongOutage {
  const at = random.between(500, 3_000);
  const duration = random.between(60_000, 180_000);
  if (random.chance(0.5)) return { kind: 'freeze', at, duration };
  return { kind: 'restart', at, duration, losesData: random.chance(0.5) };
}

/** Faults that only some seeds have. `pollers`: free locks are left to them, by the clock of the server. */
export function planMoreFaults(random: Random, { processes, keys }: FaultScale, pollers: boolean): Fault[] {
  const faults: Fault[] = [];
  if (pollers || random.chance(0.15)) {
    const ms = pollers ? 30_000 : random.pick([50, 700, 5_000, 30_000]);
    faults.push({ kind: 'server clock', at: random.between(20, SPAN), ms });
  }
  if (!random.chance(0.25)) return faults;
  for (let i = 0; i < 3; i++) {
    const at = random.between(20, SPAN);
    const process = random.whole(0, processes - 1);
    faults.push({ kind: 'force', at, process, key: random.pick(keys) });
  }
  return faults;
}

function planClosing(random: Random, { processes }: FaultScale): Fault {
  const process = random.whole(0, processes - 1);
  return { kind: 'close', at: random.between(30, 3_000), process, timeout: random.pick([100, 1_000, 10_000]) };
}

export function planFault(random: Random, { processes, keys, clockTrouble }: FaultScale): Fault {
  const at = random.between(20, SPAN);
  const process = random.whole(0, processes - 1);
  const target = random.weighted({ commands: 3, subscriber: 3, all: 2 });
  const mode = random.weighted({ lost: 2, executed: 2, late: 2 });
  const duration = random.pick([random.between(20, 300), random.between(200, 2_000), random.between(500, 6_000)]);
  const kind = random.weighted({
    cut: 7,
    slow: 7,
    hold: 3,
    pause: 5,
    clock: 2,
    kill: 2,
    restart: 1.5,
    freeze: 1.5,
    'flush scripts': 0.7,
    delete: 0.7,
  });
  switch (kind) {
    case 'cut':
      return { kind, at, process, target, mode };
    case 'slow':
      return {
        kind,
        at,
        process,
        target,
        duration,
        direction: random.pick(['up', 'down', 'both'] as const),
        extra: random.pick([random.between(5, 60), random.between(50, 600), random.between(300, 2_500)]),
        endsWith: random.chance(0.3) ? mode : undefined,
      };
    case 'hold':
      return { kind, at, process, target, duration };
    case 'pause':
      return { kind, at, process, duration };
    case 'clock':
      if (clockTrouble === 'suspend') return { kind: 'suspend', at, process, duration: 200 + duration };
      return { kind: 'wall clock', at, process, step: random.pick([-1, 1]) * random.pick([50, 200, 5_000, 3_600_000]) };
    case 'kill':
      return { kind, at, process, isSilent: random.chance(0.3) };
    case 'restart':
      return { kind, at, duration: random.between(5, 800), losesData: random.chance(0.5) };
    case 'freeze':
      return { kind, at, duration: random.pick([random.between(50, 1_500), random.between(3_000, 14_000)]) };
    case 'delete':
      return { kind, at, key: random.pick(keys) };
    default:
      return { kind, at };
  }
}
