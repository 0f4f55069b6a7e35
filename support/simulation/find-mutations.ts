import Table from 'cli-table3';
import { mutations } from '../../support/mutations';
import { type LockType, planOf } from './plan';
import { EXTRAS_ON, type Extra } from './plan-extras';
import { bundleLibrary } from './process/library';
import type { ScriptEngine } from './server/script-engine';
import { Simulator } from './simulator';

interface Found {
  readonly lockType: LockType;
  readonly seed: number;
  readonly violated: string;
}

/** Takes out each fix in turn and searches for a seed that fails, of the first of its types that has one. Returns the exit code: 1 when one is not found. */
export async function runMutations(
  engine: ScriptEngine,
  seeds: number,
  { types, names }: { readonly types: readonly string[] | undefined; readonly names: readonly string[] },
): Promise<number> {
  const table = new Table({ head: ['mutation', 'finding', 'found', 'violated'], style: { head: [], border: [] } });
  let missed = 0;
  const bundle = await bundleLibrary();
  for (const mutation of mutations) {
    if (names.length > 0 && !names.includes(mutation.name)) continue;
    const asked = ((mutation.simulation ?? []) as readonly LockType[]).filter((type) => types?.includes(type) ?? true);
    if (mutation.test !== undefined && types === undefined)
      table.push([mutation.name, mutation.finding, `by npx jest ${mutation.test}`, '']);
    if (asked.length === 0) continue;
    const mutated = await bundleLibrary([mutation.name]);
    let found: Found | undefined;
    for (const lockType of asked) found ??= await search(bundle, engine, mutated, lockType, seeds, mutation.extra);
    if (found === undefined) missed++;
    const at = found ? `seed ${found.seed} of ${found.lockType}` : `not within ${seeds} seeds of ${asked.join(', ')}`;
    console.error(`${mutation.name}: ${at}`);
    table.push([mutation.name, mutation.finding, at, found?.violated ?? '']);
  }
  console.log(table.toString());
  return missed > 0 ? 1 : 0;
}

/** Only a violation that the library does not have with its fix counts. `extra`: only seeds that have it. */
async function search(
  bundle: string,
  engine: ScriptEngine,
  mutant: string,
  lockType: LockType,
  seeds: number,
  extra: Extra | undefined,
): Promise<Found | undefined> {
  const extras = extra === undefined ? EXTRAS_ON : [extra];
  const mutated = new Simulator(mutant, engine, extras);
  const original = new Simulator(bundle, engine, extras);
  try {
    for (let seed = 1; seed <= seeds; seed++) {
      if (extra !== undefined && planOf(seed, lockType, extras).extra !== extra) continue;
      const { violations } = await mutated.runSeed(seed, lockType);
      if (violations.length === 0) continue;
      const before = (await original.runSeed(seed, lockType)).violations.map(({ kind }) => kind);
      const violation = violations.find(({ kind }) => !before.includes(kind));
      if (violation !== undefined) return { lockType, seed, violated: violation.kind };
    }
    return undefined;
  } finally {
    mutated.close();
    original.close();
  }
}
