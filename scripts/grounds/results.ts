import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Outcome } from '../../support/grounds/run-cell';
import type { Result } from '../../support/grounds/tables';
import { ROOT } from './folder';

/** Results of earlier runs: a run may be about a few cells only. */
const KEPT = join(ROOT, 'node_modules/.cache/grounds.json');

export function kept(): Map<string, Result> {
  const all = existsSync(KEPT) ? (JSON.parse(readFileSync(KEPT, 'utf8')) as Result[]) : [];
  return new Map(all.map((result) => [result.name, result]));
}

/** Replaces what is kept of the same cell. */
export function keep(outcome: Outcome): void {
  const all = kept().set(outcome.name, { ...outcome, date: new Date().toISOString().slice(0, 10) });
  mkdirSync(dirname(KEPT), { recursive: true });
  writeFileSync(KEPT, JSON.stringify([...all.values()], undefined, 1));
}
