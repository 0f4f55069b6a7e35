/** `npm run mutate`, which names the files: see main.ts. */
const tests = process.env.MUTATE_TESTS ?? 'unit';
const kept = `node_modules/.cache/mutate/${tests.replaceAll(',', '-')}`;

export default {
  testRunner: 'jest',
  coverageAnalysis: 'perTest',
  jest: { configFile: 'scripts/mutate/jest.config.ts', enableFindRelatedTests: false },
  testRunnerNodeArgs: ['-r', 'esbuild-register'],
  // Which mutants a test found in an earlier run, as long as neither of both has changed.
  incremental: true,
  incrementalFile: `${kept}.json`,
  reporters: ['progress-append-only', 'html', 'json'],
  htmlReporter: { fileName: 'coverage/mutate/index.html' },
  jsonReporter: { fileName: 'coverage/mutate/mutants.json' },
  tempDirName: 'coverage/mutate/sandbox',
  // Constants of a module are set once, before a mutant is chosen. No test judges them here.
  ignoreStatic: true,
  // Jest runs the tests of a mutant one after the other, and each mutant has servers of its own.
  concurrency: Number(process.env.MUTATE_AT_ONCE ?? 1),
  timeoutMS: 20_000,
  disableTypeChecks: false,
  // TypeScript 7 has no API with which Stryker could change the paths in a tsconfig. None leads out of the project.
  tsconfigFile: 'none',
};
