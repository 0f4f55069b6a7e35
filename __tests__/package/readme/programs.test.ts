import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { transformSync } from 'esbuild';
import { ifBuilt } from '../../support/built-package';
import { describePrivate } from '../../support/private-redis';
import { ProgramFolder } from './program-folder';
import { PROGRAMS, promisedOutput } from './programs';

const run = promisify(execFile);

/** ms; every program ends by itself long before, also on a busy machine. */
const RUN_LIMIT = 20_000;

/** Of Node's own about `mock.timers` of `node:test`. */
const QUIET = '--disable-warning=ExperimentalWarning';

ifBuilt(describePrivate)('The code of the README and of every page of docs', () => {
  const programs = ProgramFolder.install('programs');

  it('README begins with an example that is plain JavaScript for Node 20', () => {
    const [first] = PROGRAMS.filter(({ page }) => page === 'README.md');
    const code = first?.code ?? '';
    expect(first?.language).toBe('js');
    // Without `using`: esbuild leaves it as it is, but for its layout.
    expect(transformSync(code, { loader: 'js', target: 'node20', format: 'esm' }).warnings).toEqual([]);
    expect(code).not.toMatch(/\busing\b/);
    // An `unlock()` in a `finally` would hide an error of the task.
    expect(code).toContain('registry.run(');
    expect(code).not.toContain('finally');
  });

  it.each(PROGRAMS.filter(({ mark }) => mark === 'bun'))(
    'Programs for Bun are JavaScript: $page, line $line',
    ({ code }) => {
      expect(transformSync(code, { loader: 'js', target: 'node20', format: 'esm' }).warnings).toEqual([]);
    },
  );

  it('The programs of the pages compile under strict settings', async () => {
    expect(await programs.folder.complaints(PROGRAMS)).toBe('');
  });

  it.each(PROGRAMS.filter(({ mark }) => mark === undefined))(
    'A program ends by itself, and prints what it says: $page, line $line',
    async (program) => {
      const promised = promisedOutput(program);
      // A program that nothing checks would prove nothing.
      if (promised.length === 0) expect(program.code).toContain("from 'node:assert/strict'");
      const script = await programs.folder.script(program);
      const { stdout, stderr } = await run(process.execPath, [QUIET, script], {
        env: programs.env,
        timeout: RUN_LIMIT,
      });
      expect(stderr).toBe('');
      expect(stdout.split('\n').slice(0, -1)).toEqual(promised);
    },
    RUN_LIMIT + 5_000,
  );
});
