import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
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

/** Mostly what applications do, and now and then a fault. */
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

/** ms by which a busy machine may be late. */
const SLACK = 1_500;

/** What each call may end with when something was broken before, and the ms in which it has to. */
const possible = {
  lock: { outcomes: ['granted', 'LockTimeoutError', 'CannotAcquireLockError', 'AbortError'], within: WAIT_TIME },
  tryLock: { outcomes: ['granted', 'held', 'CannotAcquireLockError'], within: COMMAND_TIMEOUT },
  renew: { outcomes: ['done', 'nothing to do', 'LockLostError', 'CannotAcquireLockError'], within: COMMAND_TIMEOUT },
  unlock: { outcomes: ['done', 'nothing to do', 'LockLostError', 'LockReleaseError'], within: COMMAND_TIMEOUT },
  abort: { outcomes: ['done'], within: 0 },
} as const;

/** Runs one schedule, and answers with what went against the model. */
export async function run(fixture: ScheduleFixture, key: string, steps: readonly Step[]): Promise<string[]> {
  const ledger = new Ledger();
  fixture.ledger = ledger;
  const complaints: string[] = [];
  const waiting = new Map<ContenderName, Promise<void>>();
  /** Nothing was broken or given up yet: what has to come is certain. */
  let calm = true;

  // So is a machine that is too busy for timers: a lease may end under its holder then.
  let tickedAt = performance.now();
  const ticking = setInterval(() => {
    const now = performance.now();
    if (now - tickedAt > TTL / 8) calm = false;
    tickedAt = now;
  }, 10);

  const judged = async (step: string, method: keyof typeof possible, call: Promise<Outcome>): Promise<Outcome> => {
    const startedAt = performance.now();
    const outcome = await call;
    const { outcomes, within } = possible[method];
    const took = performance.now() - startedAt;
    if (outcome !== 'killed' && !(outcomes as readonly string[]).includes(outcome))
      complaints.push(`${step}: ${outcome}`);
    if (took > within + SLACK) complaints.push(`${step}: took ${took} ms`);
    // The machine was too busy for an answer in time: that is silence, and from now on anything may come.
    if (took >= COMMAND_TIMEOUT && method !== 'lock') calm = false;
    return outcome;
  };

  const take = async (step: Step): Promise<void> => {
    if ('ms' in step) return sleep(step.ms).then(() => undefined);
    if (!('contender' in step)) {
      calm = false;
      return step.do === 'restart' ? fixture.restart() : fixture.killProcess();
    }
    if (step.do === 'cut') {
      calm = false;
      return fixture.cut(step.contender);
    }
    const contender = await fixture.contender(step.contender);
    const name = `${step.contender} ${step.do}`;
    const mine = () => ledger.holders.some((id) => id.startsWith(step.contender));
    if (step.do === 'lock' || step.do === 'tryLock') {
      // One at a time for each party.
      if (waiting.has(step.contender) || mine()) return;
      if (step.do === 'lock') {
        const locking = judged(name, 'lock', contender.lock(key, WAIT_TIME));
        waiting.set(
          step.contender,
          locking.then(() => void waiting.delete(step.contender)),
        );
        return;
      }
      const wasFree = ledger.holders.length === 0 && waiting.size === 0;
      const outcome = await judged(name, 'tryLock', contender.tryLock(key));
      if (calm && wasFree && outcome !== 'granted') complaints.push(`${name}: ${outcome} in calm`);
      return;
    }
    if (step.do === 'abort' && waiting.has(step.contender)) calm = false;
    const held = mine();
    const outcome = await judged(name, step.do, contender[step.do]());
    if (performance.now() - tickedAt > TTL / 8) calm = false;
    if (calm && held && outcome !== 'done') complaints.push(`${name}: ${outcome} in calm`);
  };

  for (const step of steps) await take(step);
  await Promise.all(waiting.values());
  for (const each of CONTENDERS) await take({ do: 'unlock', contender: each });
  clearInterval(ticking);
  const left = () => fixture.admin.exists(`${fixture.registryKey}:${key}`);
  await until(async () => (await left()) === 0, { within: 2 * TTL + SLACK }).catch(() =>
    complaints.push('a key is left'),
  );
  return [...complaints, ...ledger.violations];
}
