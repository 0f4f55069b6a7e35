import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type {
  DryRunResult,
  MutantRunOptions,
  MutantRunResult,
  TestRunner,
  TestRunnerCapabilities,
} from '@stryker-mutator/api/test-runner';
import { LONG_TESTS } from '../long-tests';
import { install, type Outcome, TestFile } from './test-file';

/** ms; a mutant may make a test that takes no time wait for this long. */
const SHORT = 1_000;

/** ms for a test that runs for the first time, without a mutant. */
const LONG = 60_000;

/** ms for which a mutant may keep the event loop from turning. */
const BLOCKED = 5_000;

/** Ends the process where the event loop does not turn any more: no timer of its own would notice. */
const ENDS_BLOCKED = `
  const { workerData: { beats, limit } } = require('node:worker_threads');
  let last = 0, since = Date.now();
  setInterval(() => {
    const beat = Atomics.load(beats, 0);
    if (beat !== last) [last, since] = [beat, Date.now()];
    else if (Date.now() - since > limit) process.kill(process.pid, 'SIGKILL');
  }, 250);
`;

/** What runs in the file of a name took, in ms, and how many mutants it has found. */
interface Known {
  readonly ms: Record<string, number>;
  kills: number;
}

/** What Stryker's changed code reads and writes. */
interface Instrumented {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
  mutantCoverage?: { readonly perTest: Record<string, unknown> };
}

const instrumented = (): Instrumented => {
  const scope = globalThis as { __stryker__?: Instrumented };
  scope.__stryker__ ??= {};
  return scope.__stryker__;
};

/**
 * Runs the tests of a mutant in this process, without Jest: it would load each file anew for each mutant, which takes
 * far longer than the tests. A test that fails counts if it fails again in a file that was loaded anew: then neither an
 * earlier mutant nor the busy machine was the reason.
 */
class InProcessRunner implements TestRunner {
  readonly #root = process.cwd();
  readonly #files = new Map<string, TestFile>();
  /** Survives the process, which ends with a mutant that never ends. */
  readonly #memory = join(this.#root, 'known.json');
  #known: Record<string, Known> = {};
  /** Something of a test that did not end runs on for ever. */
  #isSpoilt = false;
  #isWatched = false;

  capabilities(): TestRunnerCapabilities {
    return { reloadEnvironment: false };
  }

  async init(): Promise<void> {
    process.env.JEST_WORKER_ID = `${Number(process.env.STRYKER_MUTATOR_WORKER ?? 0) + 1}`;
    install(this.#root);
    // Not the first process of this run: the one before it was ended.
    if (existsSync(this.#memory)) this.#known = JSON.parse(readFileSync(this.#memory, 'utf8'));
  }

  async dryRun(): Promise<DryRunResult> {
    const tests = [];
    for (const path of this.#paths()) {
      const outcomes = await this.#runAll(path);
      if (outcomes.length === 0) continue;
      const ms = Object.fromEntries(outcomes.map((outcome) => [outcome.name, outcome.ms]));
      this.#known[path] = { ms, kills: 0 };
      for (const { name, ms: timeSpentMs, failure } of outcomes) {
        const id = `${path} ${name}`;
        if (failure !== undefined) this.#leaveOut(`${id}: ${failure}`);
        // Else it would judge the mutants that it ran into.
        if (failure !== undefined) delete instrumented().mutantCoverage?.perTest[id];
        const status = failure === undefined ? 0 : 2;
        tests.push({ id, name, fileName: join(this.#root, path), timeSpentMs, status });
      }
    }
    writeFileSync(this.#memory, JSON.stringify(this.#known));
    const { mutantCoverage } = instrumented();
    return { status: 'complete', tests, mutantCoverage } as never;
  }

  async mutantRun({ activeMutant, testFilter = [], hitLimit }: MutantRunOptions): Promise<MutantRunResult> {
    // Stryker starts another process.
    if (this.#isSpoilt) process.exit(1);
    // The process before this one ended with it.
    const begun = join(this.#root, `begun-${activeMutant.id}`);
    if (existsSync(begun)) return { status: 'timeout', reason: 'The event loop was blocked' } as MutantRunResult;
    writeFileSync(begun, '');
    if (!this.#isWatched) this.#watch();
    const state = instrumented();
    Object.assign(state, { activeMutant: activeMutant.id, hitCount: hitLimit === undefined ? undefined : 0, hitLimit });
    process.env.__STRYKER_ACTIVE_MUTANT__ = activeMutant.id;
    const names = new Map<string, Set<string>>();
    for (const id of testFilter) {
      const [path = '', ...name] = id.split(' ');
      names.set(path, (names.get(path) ?? new Set()).add(name.join(' ')));
    }
    const isHitTooOften = (): boolean => hitLimit !== undefined && (state.hitCount ?? 0) > hitLimit;
    const paths = this.#promisingFirst(names);
    // What no test finds is tried once more in fresh files: earlier mutants may have left something that is made once.
    const used = paths.filter((path) => this.#file(path).isLoaded);
    const fresh = function* (file: (path: string) => TestFile) {
      yield* paths;
      for (const path of used) file(path).forget();
      yield* used;
    };
    for (const path of fresh((one) => this.#file(one))) {
      const failed = await this.#failure(path, names.get(path) as Set<string>);
      if (failed === undefined) continue;
      const { name, failure = '', isOverTime } = failed;
      this.#isSpoilt = isOverTime && (await isBusy());
      if (isHitTooOften() || isOverTime) return { status: 'timeout', reason: failure } as MutantRunResult;
      (this.#known[path] as Known).kills++;
      const killedBy = [`${path} ${name}`];
      return { status: 'killed', killedBy, failureMessage: failure, nrOfTests: 1 } as MutantRunResult;
    }
    return { status: 'survived', nrOfTests: testFilter.length } as MutantRunResult;
  }

  async dispose(): Promise<void> {
    writeFileSync(this.#memory, JSON.stringify(this.#known));
  }

  #watch(): void {
    this.#isWatched = true;
    const beats = new Int32Array(new SharedArrayBuffer(4));
    setInterval(() => Atomics.add(beats, 0, 1), 100).unref();
    new Worker(ENDS_BLOCKED, { eval: true, workerData: { beats, limit: BLOCKED } }).unref();
  }

  #leaveOut(what: string): void {
    appendFileSync(join(__dirname, '../../coverage/mutate/left-out.txt'), `${what}\n`);
  }

  /** Folders of `__tests__`, or what the path of a file in it begins with. */
  #paths(): string[] {
    const chosen = (process.env.MUTATE_TESTS ?? 'unit').split(',');
    const long = new RegExp(LONG_TESTS.map((path) => path.replace('<rootDir>/', '')).join('|'));
    return readdirSync(join(this.#root, '__tests__'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.test.ts') && chosen.some((one) => path === one || path.startsWith(one)))
      .map((path) => join('__tests__', path))
      .filter((path) => !long.test(path))
      .sort();
  }

  async #runAll(path: string): Promise<Outcome[]> {
    const state = instrumented();
    const begins = (name: string): void => {
      state.currentTestId = `${path} ${name}`;
    };
    try {
      return await this.#file(path).run(undefined, () => LONG, begins);
    } catch (error) {
      this.#leaveOut(`${path}: ${error}`);
      return [];
    } finally {
      state.currentTestId = undefined;
    }
  }

  /** The first failure, if the test fails again in a fresh file. */
  async #failure(path: string, names: ReadonlySet<string>): Promise<Outcome | undefined> {
    const file = this.#file(path);
    const limit = (name: string): number => SHORT + 5 * (this.#known[path]?.ms[name] ?? 0);
    const run = async (chosen: ReadonlySet<string>): Promise<Outcome | undefined> => {
      try {
        return (await file.run(chosen, limit, () => undefined)).find(({ failure }) => failure !== undefined);
      } catch (error) {
        return { name: [...chosen].join(), ms: 0, failure: `${error}`, isOverTime: false };
      }
    };
    let left = names;
    for (;;) {
      const failed = await run(left);
      if (failed === undefined) return undefined;
      file.forget();
      const again = await run(new Set([failed.name]));
      file.forget();
      if (again !== undefined) return again;
      // The tests behind it did not run.
      const all = [...left];
      left = new Set(all.slice(all.indexOf(failed.name) + 1));
      if (left.size === 0) return undefined;
    }
  }

  /** The files that find many mutants in little time come first. */
  #promisingFirst(names: ReadonlyMap<string, ReadonlySet<string>>): string[] {
    const cost = (path: string): number => {
      const { ms = {}, kills = 0 } = this.#known[path] ?? {};
      const total = [...(names.get(path) ?? [])].reduce((sum, name) => sum + (ms[name] ?? 0), 1);
      return total / (1 + kills);
    };
    return [...names.keys()].sort((a, b) => cost(a) - cost(b));
  }

  #file(path: string): TestFile {
    const file = this.#files.get(path) ?? new TestFile(this.#root, join(this.#root, path));
    this.#files.set(path, file);
    return file;
  }
}

/** Whether this process, which has nothing to do, does something all the time. */
async function isBusy(): Promise<boolean> {
  const before = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, 100));
  return process.cpuUsage(before).user > 20_000;
}

export const strykerPlugins = [{ kind: 'TestRunner', name: 'in-process', injectableClass: InProcessRunner }];
