import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BOUNDS, constants } from '../../support/bounds';

/**
 * `npm run bounds`: makes each constant of `lib` ten times larger, and ten times smaller, and sees its test fail. Names of
 * files or constants after `--` for a part; `--list` prints the table.
 */

const ROOT = join(__dirname, '..', '..');
const JEST = join(ROOT, 'node_modules/jest/bin/jest.js');
const CONFIG = [
  '--config',
  'scripts/bounds/jest.config.ts',
  '--maxWorkers',
  '1',
  '--testTimeout',
  '10000',
  '--forceExit',
];

/** ms; a test that hangs has failed. */
const LIMIT = 120_000;

const folder = mkdtempSync(join(tmpdir(), 'bounds-'));

/** Whether a test of this file fails when the constant is multiplied. */
function fails(test: string, id: string, by: number): boolean {
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const env = { ...process.env, BOUND: id, BY: String(by) };
  const file = `__tests__/${test}.test.ts`;
  const args = [JEST, ...CONFIG, '--json', '--outputFile', report, file];
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, env, timeout: LIMIT, encoding: 'utf8' });
  if (status === null) return true;
  return (JSON.parse(readFileSync(report, 'utf8')) as { numFailedTests: number }).numFailedTests > 0;
}

const words = process.argv.slice(2);
const isList = words.includes('--list');
const parts = words.filter((word) => !word.startsWith('--'));
const chosen = constants().filter(({ id }) => parts.length === 0 || parts.some((part) => id.includes(part)));
for (const { id, value, about } of chosen) {
  const bound = BOUNDS[id];
  const both = typeof bound === 'object' ? bound : { larger: bound, smaller: bound };
  if (isList) console.log(`${id} = ${value}\n  ${about}`);
  for (const [size, by] of [
    ['larger', 10],
    ['smaller', 0.1],
  ] as const) {
    const held = both[size] ?? 'because nobody has said';
    const isReason = held.startsWith('because ');
    if (isList) console.log(`  ten times ${size}: ${isReason ? `no test, ${held}` : `fails ${held}`}`);
    if (isList || isReason) continue;
    const isCaught = fails(held, id, by);
    if (!isCaught) process.exitCode = 1;
    console.log(`${isCaught ? 'fails  ' : 'PASSES '} ${id} ten times ${size}: ${held}`);
  }
}
rmSync(folder, { recursive: true });
