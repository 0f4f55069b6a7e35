import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LockType } from '../../../../lib/kinds';
import { cacheOf } from './cache';

/** What tests have measured beside one library, in ms. Only the page has it: no test asserts a speed. */
export interface Figures {
  readonly date: string;
  /** From a release to the entry of the other side, in several rounds. */
  readonly wakesOurs: Partial<Record<LockType, readonly number[]>>;
  readonly wakesTheirs: readonly number[];
  /** Turns and longest waits under full load, by our type. */
  readonly shares: Partial<Record<LockType, Share>>;
}

export interface Share {
  readonly ours: number;
  readonly theirs: number;
  readonly longestOurs: number;
  readonly longestTheirs: number;
}

const FOLDER = cacheOf('figures');

export function keepFigures(library: string, figures: Figures): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${library}.json`), JSON.stringify(figures, undefined, 2));
}

/** Of the libraries that the last run had. */
export function keptFigures(): ReadonlyMap<string, Figures> {
  mkdirSync(FOLDER, { recursive: true });
  return new Map(
    readdirSync(FOLDER).map((file) => [
      file.replace(/\.json$/, ''),
      JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Figures,
    ]),
  );
}

export function forgetFigures(): void {
  rmSync(FOLDER, { recursive: true, force: true });
}
