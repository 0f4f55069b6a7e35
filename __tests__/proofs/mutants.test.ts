import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

it('Each reason why a mutant is harmless is about one that Stryker makes of the library', () => {
  const root = join(__dirname, '../..');
  const args = ['-r', 'esbuild-register', 'scripts/mutate/main.ts', '--reasons'];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  expect([stdout, stderr]).toEqual(['', '']);
}, 120_000);
