import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Config } from '@jest/types';
import { isIn, type Judged, type Reasons, readReport, survivorsOf, withoutMutant } from '../../support/mutants';
import { runMain } from '../../support/run-main';
import setup from '../jest-global-setup';
import teardown from '../jest-global-teardown';
import { allMutants } from './all-mutants';

const USAGE = `npm run mutate -- [options] FILE or FOLDER…
  Puts small mistakes into the files, one at a time, and looks whether a test fails for each.
  --changed       the lines of lib that differ from the last commit
  --tests A,B     the folders of __tests__ that judge, or files, as unit,kinds/waiting/shares (default: unit, the quickest)
  --at-once N     how many mutants run at a time (default 1)
  --reasons       only look whether each reason of harmless.json has a mutant`;

const ROOT = join(__dirname, '../..');
const REASONS: Reasons = JSON.parse(readFileSync(join(__dirname, 'harmless.json'), 'utf8'));

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

/** Tests that need more of Jest than `test-file.ts` has. */
const LEFT_OUT = join(ROOT, 'coverage/mutate/left-out.txt');

/** The mutants of these places, and whether a test of these folders found each of them. */
function judge(places: readonly string[], tests: string, atOnce: string): Judged[] {
  rmSync(LEFT_OUT, { force: true });
  const { status } = spawnSync('npx', ['stryker', 'run', 'scripts/mutate/stryker.config.mjs', '-m', places.join(',')], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, MUTATE_TESTS: tests, MUTATE_AT_ONCE: atOnce },
  });
  if (status !== 0)
    throw new Error(`Stryker ended with ${status}: the tests of ${tests} have to pass without a mutant`);
  if (existsSync(LEFT_OUT)) console.log(`Left out, as they fail without a mutant:\n${readFileSync(LEFT_OUT, 'utf8')}`);
  return readReport(join(ROOT, 'coverage/mutate/mutants.json')).filter((mutant) => isIn(places, mutant));
}

/** Prints what no test found. The exit code. */
function report(places: readonly string[], tests: string, atOnce: string): number {
  const judged = judge(places, tests, atOnce);
  const left = judged.filter(({ isFound }) => !isFound);
  const { harmless, survivors } = survivorsOf(left, REASONS);
  for (const { span, original, replacement } of survivors) {
    console.log(`\n${span}\n  - ${original}\n  + ${replacement}`);
  }
  const table = [...new Set(judged.map(({ file }) => file))].map((file) => {
    const ofFile = (mutant: Judged): boolean => mutant.file === file;
    const counted = judged.filter(ofFile).length - harmless.filter(ofFile).length;
    const found = counted - survivors.filter(ofFile).length;
    return { file, harmless: harmless.filter(ofFile).length, others: counted, found, '%': percent(found, counted) };
  });
  console.table(table);
  const counted = judged.length - harmless.length;
  const found = judged.length - left.length;
  console.log(
    `\n${judged.length} mutants; ${harmless.length} change nothing that can be observed (harmless.json). ` +
      `Of the ${counted} others a test of ${tests} found ${found}, ${percent(found, counted)} %.`,
  );
  const timedOut = judged.filter(({ isTimedOut }) => isTimedOut);
  if (timedOut.length > 0) {
    console.log(`Of these, ${timedOut.length} did not end in time. On a busy machine, run them again:`);
    for (const { span, replacement } of timedOut) console.log(`  ${span}  ${replacement}`);
  }
  return survivors.length === 0 ? 0 : 1;
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 100 : Math.round((1_000 * part) / whole) / 10;
}

void runMain(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      changed: { type: 'boolean', default: false },
      tests: { type: 'string', default: 'unit' },
      'at-once': { type: 'string', default: '1' },
      reasons: { type: 'boolean', default: false },
    },
  });
  if (values.reasons) {
    const stale = withoutMutant(REASONS, await allMutants());
    for (const one of stale) console.log(`No mutant is so any more: ${one}`);
    return stale.length === 0 ? 0 : 1;
  }
  const named = positionals.map((place) => (place.includes('.ts') ? place : `${place.replace(/\/$/, '')}/**/*.ts`));
  const places = [...named, ...(values.changed ? changedLines() : [])];
  if (places.length === 0) {
    console.log(values.changed ? 'No line of lib has changed.' : USAGE);
    return values.changed ? 0 : 2;
  }
  await setup({ maxWorkers: Number(values['at-once']) } as Config.GlobalConfig);
  try {
    return report(places, values.tests, values['at-once']);
  } finally {
    await teardown();
  }
});
