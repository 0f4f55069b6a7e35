import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { judgeByBoth } from '../../../support/judge/both';
import { histories, recordsIn } from '../../../support/judge/folders';
import { hasGo } from '../../../support/judge/porcupine';
import { type Mutation, type MutationName, mutations } from '../../../support/mutations';
import { SERVER_FAULTS } from '../../../support/soak/faults/server-faults';
import { WORKER_FAULTS } from '../../../support/soak/faults/worker-faults';
import type { SoakResult } from '../../../support/soak/results';
import { SOAK_TYPES } from '../../../support/soak/settings';
import { describePrivate } from '../../support/private-redis';

/** ms; the run takes some 20 s, on a machine with nothing else to do. */
const LIMIT = 170_000;
const SOAK = join(__dirname, '../../../support/soak/main.ts');

interface Run {
  readonly exitCode: number;
  readonly log: string;
  readonly results: readonly SoakResult[];
  /** What its processes wrote down. */
  readonly records: string;
}

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Porcupine is a program in Go. */
const itWithGo = hasGo() ? it : it.skip;

/** The histories that the own judge of exclusion and tokens rejects, and those that Porcupine rejects. */
function rejections({ records }: Run): { readonly own: readonly string[]; readonly porcupine: readonly string[] } {
  const judged = histories(records).map((folder) => ({ folder, ...judgeByBoth(recordsIn(folder)) }));
  return {
    own: judged.flatMap(({ folder, ownKeys }) => (ownKeys.length > 0 ? [folder] : [])),
    porcupine: judged.flatMap(({ folder, porcupineKeys }) => (porcupineKeys.length > 0 ? [folder] : [])),
  };
}

function soak(...args: string[]): Promise<Run> {
  const records = mkdtempSync(join(tmpdir(), 'soak-records-'));
  folders.push(records);
  return new Promise((resolve, reject) => {
    const command = ['-r', require.resolve('esbuild-register'), SOAK, '--json', '--records', records, ...args];
    execFile(process.execPath, command, { timeout: LIMIT, maxBuffer: 2 ** 26 }, (error, stdout, log) => {
      const exitCode = error === null ? 0 : Number(error.code);
      if (stdout === '') reject(new Error(`The soak ended with ${exitCode}: ${log}`, { cause: error }));
      else resolve({ exitCode, log, records, results: (JSON.parse(stdout) as { results: SoakResult[] }).results });
    });
  });
}

describePrivate('A short soak with all lock types', () => {
  let run: Run;

  beforeAll(async () => {
    run = await soak('--minutes', '0.12');
  }, LIMIT);

  it('P1 P2 P3 P5 P8 P10: finds no violation', () => {
    const found = run.results.flatMap(({ type, violations }) => violations.map(({ account }) => `${type}: ${account}`));
    expect(found).toEqual([]);
    expect(run.exitCode).toBe(0);
  });

  itWithGo('A short soak is not rejected by Porcupine either', () => {
    expect(histories(run.records)).toHaveLength(SOAK_TYPES.length);
    expect(rejections(run)).toEqual({ own: [], porcupine: [] });
  });

  it.each(SOAK_TYPES)('A short soak acquires locks of the type %s, under faults and in the calm after them', (type) => {
    const result = run.results.find((one) => one.type === type);
    expect(result?.acquisitions).toBeGreaterThan(0);
    expect(result?.inCalm).toBeGreaterThan(0);
  });

  it.each([...WORKER_FAULTS, ...SERVER_FAULTS])('A short soak inflicts the fault "%s"', (kind) => {
    expect(run.results.reduce((sum, { faults }) => sum + (faults[kind] ?? 0), 0)).toBeGreaterThan(0);
  });
});

/** A round of 3 s may miss it by chance; the soak ends with the first round that does not, and 8 have room. */
const SHORT_ROUNDS = ['--minutes', '0.8', '--round', '3'];

/** A short soak sees one of the kinds, and not the same in each run. */
const WRONG = mutations.filter((one: Mutation) => one.soak !== undefined) as (Required<Mutation> & {
  readonly name: MutationName;
})[];

describePrivate('A short soak of a wrong build', () => {
  const runs = new Map<string, Run>();

  beforeAll(async () => {
    await Promise.all(
      WRONG.map(async ({ name, soak: { types } }) => {
        runs.set(name, await soak(...SHORT_ROUNDS, ...types.flatMap((type) => ['--type', type]), '--wrong', name));
      }),
    );
  }, LIMIT);

  it.each(WRONG)('A short soak of a wrong build is found: $name', ({ name, soak: { kinds } }) => {
    const run = runs.get(name);
    const found = run?.results.flatMap(({ violations }) => violations.map(({ kind }) => kind)) ?? [];
    expect(found.filter((kind) => kinds.includes(kind))).not.toEqual([]);
    expect(run?.exitCode).toBe(1);
  });

  // A history on the border may differ: docs/spec/README.md says how.
  itWithGo(
    'A short soak of a wrong build is rejected by Porcupine too, in most of the histories that the own judge rejects',
    () => {
      const judged = [...runs.values()].map(rejections);
      const own = judged.flatMap((one) => one.own);
      const both = own.filter((folder) => judged.some(({ porcupine }) => porcupine.includes(folder)));
      expect(own.length).toBeGreaterThan(0);
      expect(2 * both.length).toBeGreaterThanOrEqual(own.length);
    },
  );
});
