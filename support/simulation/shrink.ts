import type { Plan } from './plan';
import type { Simulator } from './simulator';

/** Leaves out faults, callers and rounds one by one, as long as the first kind of violation is still found. */
export async function shrink(simulator: Simulator, plan: Plan): Promise<Plan> {
  const kind = (await simulator.run(plan)).violations[0]?.kind;
  if (kind === undefined) return plan;
  const stillFails = async (candidate: Plan): Promise<boolean> =>
    (await simulator.run(candidate)).violations.some((violation) => violation.kind === kind);
  let smallest = plan;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smallerThan(smallest)) {
      if (!(await stillFails(candidate))) continue;
      smallest = candidate;
      isSmaller = true;
      break;
    }
  }
  return smallest;
}

function* smallerThan(plan: Plan): Generator<Plan> {
  for (const fault of plan.faults) yield { ...plan, faults: plan.faults.filter((one) => one !== fault) };
  for (const caller of plan.callers) {
    yield { ...plan, callers: plan.callers.filter((one) => one !== caller) };
  }
  for (const caller of plan.callers) {
    if (caller.rounds.length < 2) continue;
    for (const round of caller.rounds) {
      const fewer = { ...caller, rounds: caller.rounds.filter((one) => one !== round) };
      yield { ...plan, callers: plan.callers.map((one) => (one === caller ? fewer : one)) };
    }
  }
  for (const caller of plan.callers) {
    for (const round of caller.rounds) {
      if (round.aimed === undefined) continue;
      const rounds = caller.rounds.map((one) => (one === round ? { ...round, aimed: undefined } : one));
      yield { ...plan, callers: plan.callers.map((one) => (one === caller ? { ...caller, rounds } : one)) };
    }
  }
  if (plan.lostWords !== undefined) yield { ...plan, lostWords: 0 };
  if (plan.messageFaults.lost + plan.messageFaults.doubled > 0) {
    yield { ...plan, messageFaults: { lost: 0, doubled: 0 } };
  }
}
