/** `npm run mutate`, which names the files: see main.ts. */
const tests = process.env.MUTATE_TESTS ?? 'unit';
const kept = `node_modules/.cache/mutate/${tests.replaceAll(/[,/]/g, '-').slice(0, 100)}`;

export default {
  plugins: ['./scripts/mutate/plugin.cjs'],
  testRunner: 'in-process',
  coverageAnalysis: 'perTest',
  // Which mutants a test found in an earlier run, as long as neither of both has changed.
  incremental: true,
  incrementalFile: `${kept}.json`,
  reporters: ['progress-append-only', 'html', 'json'],
  htmlReporter: { fileName: 'coverage/mutate/index.html' },
  jsonReporter: { fileName: 'coverage/mutate/mutants.json' },
  tempDirName: 'coverage/mutate/sandbox',
  // Constants of a module are set once, before a mutant is chosen. No test judges them here.
  ignoreStatic: true,
  // The tests of a mutant run one after the other, and each process has servers of its own.
  concurrency: Number(process.env.MUTATE_AT_ONCE ?? 1),
  timeoutMS: 30_000,
  dryRunTimeoutMinutes: 30,
  disableTypeChecks: false,
  // TypeScript 7 has no API with which Stryker could change the paths in a tsconfig. None leads out of the project.
  tsconfigFile: 'none',
};
