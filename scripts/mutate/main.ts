import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Mutant, type Reason, readReport, survivorsOf } from '../../support/mutants';
import { runMain } from '../../support/run-main';

const USAGE = `npm run mutate -- [options] FILE or FOLDER…
  Puts small mistakes into the files, one at a time, and looks whether a test fails for each.
  --changed       the lines of lib that differ from the last commit
  --tests A,B     the folders of __tests__ that judge (default: unit, the quickest)
  --also A,B      the folders that judge what those left over, each mutant by itself
  --at-once N     how many mutants run at a time (default 1)`;

const ROOT = join(__dirname, '../..');

/** `file:first-last` for each run of lines of lib that differ from the last commit. */
function changedLines(): string[] {
  const diff = execFileSync('git', ['diff', '-U0', 'HEAD', '--', 'lib/*.ts'], { cwd: ROOT, encoding: 'utf8' });
  const ranges: string[] = [];
  let file = '';
  for (const line of diff.split('\n')) {
    file = /^\+\+\+ b\/(.+)/.exec(line)?.[1] ?? file;
    const [, first, count = '1'] = /^@@ \S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (first !== undefined && count !== '0') ranges.push(`${file}:${first}-${Number(first) + Number(count) - 1}`);
  }
  return ranges;
}

/** The mutants of these places, and whether a test of these folders found each of them. */
function judge(places: readonly string[], tests: string, atOnce: string): Mutant[] {
  const { status } = spawnSync('npx', ['stryker', 'run', 'scripts/mutate/stryker.config.mjs', '-m', places.join(',')], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, MUTATE_TESTS: tests, MUTATE_AT_ONCE: atOnce },
  });
  if (status !== 0)
    throw new Error(`Stryker ended with ${status}: the tests of ${tests} have to pass without a mutant`);
  return readReport(join(ROOT, 'coverage/mutate/mutants.json'));
}

void runMain(() => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      changed: { type: 'boolean', default: false },
      tests: { type: 'string', default: 'unit' },
      also: { type: 'string' },
      'at-once': { type: 'string', default: '1' },
    },
  });
  const named = positionals.map((place) => (place.includes('.ts') ? place : `${place.replace(/\/$/, '')}/**/*.ts`));
  const places = [...named, ...(values.changed ? changedLines() : [])];
  if (places.length === 0) {
    console.log(values.changed ? 'No line of lib has changed.' : USAGE);
    return values.changed ? 0 : 2;
  }
  const judged = judge(places, values.tests, values['at-once']);
  let left = judged.filter(({ isFound }) => !isFound);
  if (values.also !== undefined && left.length > 0) {
    const spans = new Set(left.map(({ span }) => span));
    const again = judge([...spans], values.also, values['at-once']);
    left = left.filter(({ id }) => !again.some((mutant) => mutant.id === id && mutant.isFound));
  }
  const reasons: Reason[] = JSON.parse(readFileSync(join(__dirname, 'harmless.json'), 'utf8'));
  const { harmless, survivors } = survivorsOf(left, reasons);
  for (const { span, original, replacement } of survivors) {
    console.log(`\n${span}\n  - ${original}\n  + ${replacement}`);
  }
  const counted = judged.length - harmless.length;
  const found = judged.length - left.length;
  const share = counted === 0 ? '' : `, ${((100 * found) / counted).toFixed(1)} %`;
  console.log(
    `\n${judged.length} mutants; ${harmless.length} change nothing that can be observed (harmless.json). ` +
      `Of the ${counted} others a test of ${[values.tests, values.also].filter(Boolean).join(',')} found ${found}${share}.`,
  );
  return survivors.length === 0 ? 0 : 1;
});
