import { execFile } from 'node:child_process';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { ROOT } from '../package/readme/pages';

const run = promisify(execFile);

/** The files that a new process has loaded for a program; paths from the root. */
async function filesLoadedBy(program: string): Promise<string[]> {
  const script = `
    const before = new Set(Object.keys(require.cache));
    ${program}
    process.on('exit', () => console.log(JSON.stringify(Object.keys(require.cache).filter((file) => !before.has(file)))));`;
  const args = ['-r', require.resolve('esbuild-register'), '-e', script];
  const { stdout } = await run(process.execPath, args, { cwd: ROOT });
  return (JSON.parse(stdout) as string[]).map((file) => relative(ROOT, file)).sort();
}

it('Locks in memory load no Redis client, no script, and of lib/redis only outcomes, names and times', async () => {
  const program = `
    const { InMemoryLockRegistry } = require('${join(ROOT, 'lib/testing')}');
    new InMemoryLockRegistry({ fencing: true }).run('key', () => undefined);`;
  const loaded = await filesLoadedBy(program);
  expect(loaded).toContain('lib/testing/index.ts');
  expect(loaded.filter((file) => file.startsWith('lib/redis/'))).toEqual([
    'lib/redis/attempts.ts',
    'lib/redis/failure.ts',
    'lib/redis/names.ts',
    'lib/redis/server-errors.ts',
    'lib/redis/silence-times.ts',
  ]);
  expect(loaded.filter((file) => file.startsWith('lib/kinds/'))).toEqual([
    'lib/kinds/shared/locks.ts',
    'lib/kinds/shared/permits.ts',
    'lib/kinds/shared/rules.ts',
  ]);
  const packages = loaded.flatMap((file) => /^node_modules\/([^/]+)/.exec(file)?.[1] ?? []);
  expect([...new Set(packages)]).toEqual(['async-mutex', 'tslib']);
});

it('Only the entry point for OpenTelemetry loads its API', async () => {
  const loadsApi = async (entry: string) =>
    (await filesLoadedBy(`require('${join(ROOT, entry)}');`)).some((file) => file.includes('@opentelemetry'));
  expect([await loadsApi('lib'), await loadsApi('lib/integrations/opentelemetry')]).toEqual([false, true]);
});
