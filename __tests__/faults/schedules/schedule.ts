import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { machineDelay } from '../../support/machine-delay';
import { until } from '../../support/until';
import type { Outcome } from './contender';
import { Ledger } from './ledger';
import { CONTENDERS, type ContenderName, type ScheduleFixture } from './schedule-fixture';
import { COMMAND_TIMEOUT, TTL, WAIT_TIME } from './settings';

export type Step =
  | { readonly do: 'lock' | 'tryLock' | 'renew' | 'unlock' | 'abort' | 'cut'; readonly contender: ContenderName }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'restart' | 'kill' };

const contenderName = fc.constantFrom(...CONTENDERS);
const by = (what: 'lock' | 'tryLock' | 'renew' | 'unlock' | 'abort' | 'cut') =>
  fc.record({ do: fc.constant(what), contender: contenderName });

/** Steps of applications, and some faults. */
export const schedules = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: by('lock') },
    { weight: 4, arbitrary: by('tryLock') },
    { weight: 8, arbitrary: by('unlock') },
    { weight: 3, arbitrary: by('renew') },
    { weight: 2, arbitrary: by('abort') },
    { weight: 6, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 150 }) }) },
    { weight: 3, arbitrary: by('cut') },
    { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
    { weight: 1, arbitrary: fc.constant({ do: 'kill' as const }) },
  ),
  { minLength: 6, maxLength: 16 },
);

/** ms of delay that is allowed on a busy machine. */
const SLACK = 1_500;

/** The possible outcomes of each call after a fault, and its time limit in ms. */
const possible = {
  lock: { outcomes: ['granted', 'LockTimeoutError', 'CannotAcquireLockError', 'AbortError'], within: WAIT_TIME },
  tryLock: { outcomes: ['granted', 'held', 'CannotAcquireLockError'], within: COMMAND_TIMEOUT },
  renew: { outcomes: ['done', 'nothing to do', 'LockLostError', 'CannotAcquireLockError'], within: COMMAND_TIMEOUT },
  unlock: { outcomes: ['done', 'nothing to do', 'LockLostError', 'LockReleaseError'], within: COMMAND_TIMEOUT },
  abort: { outcomes: ['done'], within: 0 },
} as const;

/** Runs one schedule, and resolves to its violations of the model. */
export async function run(fixture: ScheduleFixture, key: string, steps: readonly Step[]): Promise<string[]> {
  const ledger = new Ledger();
  fixture.ledger = ledger;
  const violations: string[] = [];
  const waiting = new Map<ContenderName, Promise<void>>();
  /** No fault, abort or delay so far: the outcomes are certain. */
  let isUndisturbed = true;

  // A machine too busy for timers is a disturbance too: a lease may end early.
  let tickedAt = performance.now();
  const ticking = setInterval(() => {
    const now = performance.now();
    if (now - tickedAt > TTL / 8) isUndisturbed = false;
    tickedAt = now;
  }, 10);

  const checked = async (step: string, method: keyof typeof possible, call: Promise<Outcome>): Promise<Outcome> => {
    const startedAt = performance.now();
    const outcome = await call;
    const { outcomes, within } = possible[method];
    const took = performance.now() - startedAt;
    if (outcome !== 'killed' && !(outcomes as readonly string[]).includes(outcome))
      violations.push(`${step}: ${outcome}`);
    if (took > within + SLACK + machineDelay()) violations.push(`${step}: took ${took} ms`);
    // The machine was too busy for a reply in time: from now on all possible outcomes are allowed.
    if (took >= COMMAND_TIMEOUT && method !== 'lock') isUndisturbed = false;
    return outcome;
  };

  const execute = async (step: Step): Promise<void> => {
    if ('ms' in step) return sleep(step.ms).then(() => undefined);
    if (!('contender' in step)) {
      isUndisturbed = false;
      return step.do === 'restart' ? fixture.restart() : fixture.killProcess();
    }
    if (step.do === 'cut') {
      isUndisturbed = false;
      return fixture.cut(step.contender);
    }
    const contender = await fixture.contender(step.contender);
    const name = `${step.contender} ${step.do}`;
    const isHolding = () => ledger.holders.some((id) => id.startsWith(step.contender));
    if (step.do === 'lock' || step.do === 'tryLock') {
      // One acquisition at a time for each contender.
      if (waiting.has(step.contender) || isHolding()) return;
      if (step.do === 'lock') {
        const locking = checked(name, 'lock', contender.lock(key, WAIT_TIME));
        waiting.set(
          step.contender,
          locking.then(() => void waiting.delete(step.contender)),
        );
        return;
      }
      const wasFree = ledger.holders.length === 0 && waiting.size === 0;
      const outcome = await checked(name, 'tryLock', contender.tryLock(key));
      if (isUndisturbed && wasFree && outcome !== 'granted')
        violations.push(`${name}: ${outcome} without a disturbance`);
      return;
    }
    if (step.do === 'abort' && waiting.has(step.contender)) isUndisturbed = false;
    const held = isHolding();
    const outcome = await checked(name, step.do, contender[step.do]());
    if (performance.now() - tickedAt > TTL / 8) isUndisturbed = false;
    if (isUndisturbed && held && outcome !== 'done') violations.push(`${name}: ${outcome} without a disturbance`);
  };

  for (const step of steps) await execute(step);
  await Promise.all(waiting.values());
  for (const each of CONTENDERS) await execute({ do: 'unlock', contender: each });
  clearInterval(ticking);
  const left = () => fixture.admin.exists(`${fixture.registryKey}:${key}`);
  await until(async () => (await left()) === 0, { within: 2 * TTL + SLACK }).catch(() =>
    violations.push('a key remains'),
  );
  return [...violations, ...ledger.violations];
}
