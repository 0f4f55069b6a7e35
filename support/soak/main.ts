/** `npm run soak`: exit code 0; 1 after a violation, or when the soak itself failed; 2 for a wrong option. */

import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Random } from '../random';
import { type Options, readOptions, UsageError, usage } from './options';
import { ProgressLine } from './progress-line';
import type { SoakResult } from './results';
import { tables } from './tables';
import { soakType } from './type-soak';
import { bundleWorker } from './worker-bundle';

/** ms of calm that follow the work under faults of each round. */
const CALM = 3_000;

async function soak(options: Options): Promise<void> {
  const { types, minutes, round, seed, extras, wrong, json, records: keptIn } = options;
  const out = json ? process.stderr : process.stdout;
  const folder = mkdtempSync(join(tmpdir(), 'soak-'));
  try {
    const bundle = join(folder, 'worker.js');
    await bundleWorker(bundle, wrong);
    out.write(`seed ${seed}${wrong === undefined ? '' : `, a wrong build: ${wrong}`}\n`);
    const progress = new ProgressLine(minutes * 60_000);
    // A wrong build is found once any type finds it.
    const found = new AbortController();
    const ended = wrong === undefined ? undefined : found.signal;
    const results = await Promise.all(
      types.map(async (type) => {
        const records = join(folder, type);
        mkdirSync(records);
        const random = new Random(seed + type.length * 1_000_003 + type.charCodeAt(0));
        const result = await soakType({
          type,
          workers: minutes < 1 || wrong !== undefined ? 3 : 4,
          rounds: roundsOf(minutes * 60_000, round * 1_000),
          random,
          extras,
          bundle,
          folder: records,
          ended,
        });
        if (result.violations.length > 0) found.abort();
        return result;
      }),
    ).finally(() => progress.stop());
    report(results, out);
    if (json) console.log(JSON.stringify({ options, results }, null, 2));
    if (results.some(({ violations }) => violations.length > 0)) process.exitCode = 1;
  } finally {
    if (keptIn !== undefined)
      for (const type of types) cpSync(join(folder, type), join(keptIn, type), { recursive: true });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** ms of work in each of the rounds that the time has room for. */
function roundsOf(total: number, round: number): number[] {
  const count = Math.max(1, Math.round(total / (round + CALM)));
  return new Array<number>(count).fill(count === 1 ? total : total / count - CALM);
}

function report(results: readonly SoakResult[], out: NodeJS.WriteStream): void {
  for (const { type, violations } of results) {
    for (const { account } of violations.slice(0, 20)) out.write(`\n${type}: ${account}\n`);
    if (violations.length > 20) out.write(`\n${type}: and ${violations.length - 20} more violations\n`);
  }
  out.write(`\n${tables(results)}\n`);
}

async function main(): Promise<void> {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options === undefined) console.log(usage);
    else await soak(options);
  } catch (error) {
    console.error(error instanceof UsageError ? `${error.message}\n\n${usage}` : error);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
// A connection of a proxy that could not be reset stays open, and would keep this process alive.
void main().finally(() => process.stdout.write('', () => process.exit()));
