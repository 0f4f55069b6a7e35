import TestRunner from 'jest-runner';

type Arguments = Parameters<TestRunner['runTests']>;
type Test = Arguments[0][number];

interface Known {
  readonly names: string[];
  readonly ms: number;
}

/** What the first run of a process saw of each test file. Stryker runs all of them once, and then some for each mutant. */
const known = new Map<string, Known>();

/**
 * Stryker names the tests that execute a mutant, and jest would load every file to look for them. This runner leaves out
 * the files that have none of them, and begins with the quickest one.
 */
export default class MutantRunner extends TestRunner {
  override async runTests(...[tests, watcher, options]: Arguments): Promise<void> {
    const { testNamePattern } = this._globalConfig;
    if (testNamePattern === undefined || known.size === 0) {
      this.on('test-file-success', ([{ path }, { testResults, perfStats }]) => {
        known.set(path, { names: testResults.map(({ fullName }) => fullName), ms: perfStats.end - perfStats.start });
      });
      return super.runTests(tests, watcher, options);
    }
    const pattern = new RegExp(testNamePattern, 'i');
    const ms = ({ path }: Test): number => known.get(path)?.ms ?? 0;
    const needed = tests.filter(({ path }) => known.get(path)?.names.some((name) => pattern.test(name)) ?? true);
    return super.runTests(
      needed.sort((a, b) => ms(a) - ms(b)),
      watcher,
      options,
    );
  }
}
