import type { LoadSpec } from '../loads';
import type { RunPlan } from '../running-candidate';
import { scenarios } from '../scenarios';
import { quickWarmUp, type WarmUp } from '../scenarios/warm-up';

/** A load whose cost is taken apart. */
export interface Subject {
  /** Of the scenario with the same load, or about the same. */
  readonly id: string;
  readonly title: string;
  /** What is counted, of which each costs so much. */
  readonly unit: string;
  readonly loads: readonly LoadSpec[];
  readonly warmUp: WarmUp;
  /** The first is the one that the others are compared with. */
  readonly floors: readonly string[];
}

const OURS = ['spin', 'pub-sub', 'fair'];

/** The loads of a scenario, of a size where it is a point of a curve. */
function ofScenario(id: string, title: string, unit: string, floors: readonly string[], size?: number): Subject {
  const scenario = scenarios.find((one) => one.id === id && one.point?.size === size);
  if (scenario === undefined) throw new Error(`There is no scenario ${id}`);
  const { loads, warmUp } = scenario.plan(false);
  return { id, title, unit, loads, warmUp, floors };
}

/** By CPU time. */
export const CPU_SUBJECTS: readonly Subject[] = [
  ofScenario('1', 'Uncontended, one caller, the same key', 'cycle', ['floor', 'floor-evalsha']),
  ofScenario('2', 'Uncontended, 100 callers on 100 keys', 'cycle', ['floor-evalsha']),
  ofScenario('9a', 'Uncontended, one caller, 10,000 keys in turn', 'cycle', ['floor-evalsha'], 10_000),
  ofScenario('3', 'One key, 100 callers in one process', 'acquisition', ['floor-hand-over', 'floor-fair']),
  ofScenario('4a', 'One key, 4 processes with 10 callers', 'acquisition', ['floor-fifo', 'floor-token', 'floor-fair']),
  ofScenario('4t', 'The same, 1 ms of work, 10 to 30 ms of thinking', 'acquisition', ['floor-token', 'floor-fair']),
];

/** By objects on the heap. */
export const HELD: Subject = {
  id: '7',
  title: 'A held lease',
  unit: 'lease',
  loads: [{ load: 'heldParts', settings: { locks: 4_000 } }],
  warmUp: { longest: 0 },
  floors: ['floor-fifo'],
};

/** By bytes that are allocated. */
export const BURST: Subject = {
  id: '7',
  title: '50,000 acquisitions at once',
  unit: 'acquisition',
  loads: [{ load: 'burst', settings: { locks: 50_000 } }],
  warmUp: { longest: 0 },
  floors: ['floor-evalsha'],
};

export const candidatesOf = ({ floors }: Subject): readonly string[] => [...floors, ...OURS];

/** Loads of locks that are only taken have no window: they take as long as they take. */
export function planOf(subject: Subject, window: number, isQuick: boolean): RunPlan {
  const { loads, warmUp } = subject;
  if (!CPU_SUBJECTS.includes(subject)) return { loads, warmUp, window: 0 };
  return { loads, warmUp: isQuick ? quickWarmUp(500) : warmUp, window };
}

export const SUBJECTS: readonly Subject[] = [...CPU_SUBJECTS, HELD, BURST];
