import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { runMain } from '../support/run-main';
import { runMutations } from '../support/simulation/find-mutations';
import { LOCK_TYPES, type LockType, planOf } from '../support/simulation/plan';
import { EXTRA_NAMES, EXTRAS_ON, type Extra } from '../support/simulation/plan-extras';
import { bundleLibrary } from '../support/simulation/process/library';
import { createScriptEngine } from '../support/simulation/server/script-engine';
import { shrink } from '../support/simulation/shrink';
import { Simulator } from '../support/simulation/simulator';
import { Summary, summaryTable } from '../support/simulation/summary';
import { type NamedTrace, refusedTraces } from './spec/traces';

const USAGE = `npm run simulate -- [options]
  --seeds N       how many seeds of each type (default 1000)
  --from N        the first of them (default 1)
  --seed N        this one alone
  --type TYPE     ${LOCK_TYPES.join(', ')}; may be repeated (default: all)
  --history       print what happened, of --seed or of the first seed that fails
  --shrink        leave out callers and faults of a failing seed as long as it fails
  --keep-going    do not stop at the first seed of a type that fails
  --extra NAME    plan this too: ${EXTRA_NAMES.join(', ')}; may be repeated (those that are on: ${EXTRAS_ON.join(', ') || 'none'})
  --without NAME  run the library with this mutation, see support/mutations.ts; may be repeated
  --trace         have TLC check what happened against docs/spec (needs Java and Maven)
  --states        print how often each change of state was made that the library allows, and the table of states
  --digest        print a digest of all that happened, and nothing else
  --mutations     run the library with each mutation, or those of --without, and search for a seed that fails (at most
                  --seeds, default 10000)`;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    type: { type: 'string', multiple: true },
    history: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
    extra: { type: 'string', multiple: true, default: [] },
    without: { type: 'string', multiple: true, default: [] },
    trace: { type: 'boolean', default: false },
    states: { type: 'boolean', default: false },
    digest: { type: 'boolean', default: false },
    mutations: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

function whole(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0) throw new RangeError(`Expected a whole number, got "${text}"`);
  return number;
}

function lockTypes(): LockType[] {
  const asked = values.type ?? [...LOCK_TYPES];
  for (const type of asked) {
    if (!LOCK_TYPES.includes(type as LockType))
      throw new RangeError(`Unknown type "${type}": one of ${LOCK_TYPES.join(', ')}`);
  }
  return asked as LockType[];
}

/** Those that are on, and those that were asked for. */
function extras(): Extra[] {
  const unknown = values.extra.find((name) => !EXTRA_NAMES.includes(name as Extra));
  if (unknown !== undefined) throw new RangeError(`Unknown extra "${unknown}": one of ${EXTRA_NAMES.join(', ')}`);
  return EXTRA_NAMES.filter((name) => EXTRAS_ON.includes(name) || values.extra.includes(name));
}

/** The seeds that were asked for: `--seed`, or `--seeds` from `--from` on. */
function* seeds(): Generator<number> {
  const from = whole(values.seed ?? values.from);
  const end = from + (values.seed === undefined ? whole(values.seeds ?? '1000') : 1);
  for (let seed = from; seed < end; seed++) yield seed;
}

async function explain(simulator: Simulator, seed: number, lockType: LockType): Promise<void> {
  const planned = planOf(seed, lockType, extras());
  const plan = values.shrink ? await shrink(simulator, planned) : planned;
  const { history, violations } = await simulator.run(plan, true);
  if (values.history) console.log(history.join('\n'));
  for (const { kind, time, text } of violations) console.log(`${kind} at ${time.toFixed(1)} ms: ${text}`);
}

async function runSeeds(simulator: Simulator, lockType: LockType): Promise<Summary> {
  const summary = new Summary(lockType);
  for (const seed of seeds()) {
    const outcome = await simulator.runSeed(seed, lockType);
    summary.add(seed, outcome);
    if (outcome.violations.length > 0 && !values['keep-going']) break;
  }
  return summary;
}

/** Returns whether TLC refused a trace. */
async function checkTraces(simulator: Simulator, lockType: LockType): Promise<boolean> {
  const traces: NamedTrace[] = [];
  for (const seed of seeds()) {
    const outcome = await simulator.runSeed(seed, lockType, false, true);
    for (const events of outcome.traces) traces.push({ name: `--seed ${seed} --type ${lockType}`, events });
  }
  const events = traces.reduce((sum, one) => sum + one.events.length, 0);
  const refused = await refusedTraces(traces);
  for (const text of refused) console.log(text);
  const verdict = refused.length === 0 ? 'the specification allows all of them' : 'refused';
  console.log(`${lockType}: ${[...seeds()].length} seeds, ${traces.length} traces, ${events} events: ${verdict}`);
  return refused.length > 0;
}

async function printDigests(simulator: Simulator): Promise<void> {
  for (const lockType of lockTypes()) {
    const hash = createHash('sha1');
    for (const seed of seeds()) {
      hash.update((await simulator.runSeed(seed, lockType, true)).history.join('\n'));
    }
    console.log(lockType, hash.digest('hex'));
  }
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  // Most errors of a simulation are expected ones: their stacks would cost more than all the rest.
  if (values.seed === undefined) Error.stackTraceLimit = 0;
  const engine = await createScriptEngine();
  if (values.mutations) {
    return runMutations(engine, whole(values.seeds ?? '10000'), { types: values.type, names: values.without });
  }
  const simulator = new Simulator(await bundleLibrary(values.without), engine, extras());
  if (values.digest) {
    await printDigests(simulator);
    simulator.close();
    return 0;
  }
  if (values.trace) {
    let isRefused = false;
    for (const lockType of lockTypes()) isRefused = (await checkTraces(simulator, lockType)) || isRefused;
    simulator.close();
    return isRefused ? 1 : 0;
  }
  const rows: ReturnType<Summary['end']>[] = [];
  let failed = 0;
  for (const lockType of lockTypes()) {
    const summary = await runSeeds(simulator, lockType);
    rows.push(summary.end());
    failed += summary.failures.length;
    const first = new Map(
      summary.failures
        .flatMap(({ seed, outcome }) => outcome.violations.map((one) => [one.kind, { seed, ...one }] as const))
        .reverse(),
    );
    for (const { kind, seed, text } of first.values()) {
      console.log(`${lockType}: ${kind}, first with --seed ${seed} --type ${lockType}: ${text}`);
    }
    const failure = summary.failures[0];
    if (values.seed !== undefined) await explain(simulator, whole(values.seed), lockType);
    else if (failure !== undefined && (values.history || values.shrink))
      await explain(simulator, failure.seed, lockType);
  }
  console.log(summaryTable(rows));
  if (values.states) console.log(`${simulator.stateChanges.table}\n${simulator.stateChanges.diagram}`);
  simulator.close();
  return failed > 0 ? 1 : 0;
}

void runMain(main);
