import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import config from '../../jest.config';
import { ROOT } from '../package/readme/pages';
import { ProgramFolder } from '../package/readme/program-folder';
import { PROGRAMS } from '../package/readme/programs';
import { ifBuilt } from '../support/built-package';
import { compiled } from '../support/compiled';

const run = promisify(execFile);

/** ms; for a framework in a process of its own, on a busy machine. */
const LIMIT = 120_000;

const JEST = join(dirname(require.resolve('jest/package.json')), 'bin/jest.js');
const PASSED_IN_VITEST = /Tests +\d+ passed \(\d+\)/;
const VITEST = join(dirname(require.resolve('vitest/package.json')), 'vitest.mjs');

/** What a framework prints; rejects when a test failed. A framework that runs in another one would take over its settings. */
async function runFramework(program: string, args: readonly string[]): Promise<string> {
  const { JEST_WORKER_ID: _, NODE_ENV: __, ...env } = process.env;
  const options = { cwd: ROOT, timeout: LIMIT, env: { ...env, NO_COLOR: '1', FORCE_COLOR: '0' } };
  const { stdout, stderr } = await run(process.execPath, [program, ...args], options);
  return stdout + stderr;
}

const FRAMEWORKS = [
  ['vitest', VITEST, ['run', '--config', join(ROOT, 'scripts/vitest.config.ts')], PASSED_IN_VITEST],
  // With the fake timers of sinon in tests of node:test.
  [
    'node:test',
    '--test-reporter=tap',
    [compiled(join(__dirname, 'fake-timers.node.ts'))],
    /^# pass [1-9]\d*\n# fail 0$/m,
  ],
] as const;

it.each(FRAMEWORKS)(
  'Locks in memory follow the fake timers of %s as those of jest',
  async (_name, program, args, passed) => {
    expect(await runFramework(program, args)).toMatch(passed);
  },
  LIMIT,
);

ifBuilt(describe)('A test file of docs/testing.md', () => {
  const TESTS = PROGRAMS.filter(({ mark }) => mark === 'test');
  let folder: ProgramFolder;

  beforeAll(async () => {
    folder = await ProgramFolder.create('testing');
  });

  afterAll(() => folder.remove());

  it('A test file for each framework is on the page', () => {
    expect(TESTS.length).toBeGreaterThan(0);
  });

  it.each(TESTS)(
    '(line $line) passes in jest',
    async ({ line, code }) => {
      const { path } = folder;
      await writeFile(join(path, `line-${line}.jest.ts`), code);
      const { transform } = config;
      const settings = { rootDir: path, testMatch: ['**/*.jest.ts'], transform, testEnvironment: 'node' };
      const output = await runFramework(JEST, ['--config', JSON.stringify(settings)]);
      expect(output).toMatch(/Tests: +\d+ passed, \d+ total/);
    },
    LIMIT,
  );

  it.each(TESTS)(
    '(line $line) passes in vitest, with its names',
    async ({ line, code }) => {
      const { path } = folder;
      const inVitest = code.replace("from '@jest/globals'", "from 'vitest'").replace(/\bjest\b/g, 'vi');
      await writeFile(join(path, `line-${line}.vitest.test.ts`), inVitest);
      const output = await runFramework(VITEST, ['run', '--root', path]);
      expect(output).toMatch(PASSED_IN_VITEST);
    },
    LIMIT,
  );
});
