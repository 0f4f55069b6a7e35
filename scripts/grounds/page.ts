import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cell } from '../../support/grounds/cell';
import { PARTS, type Result, textsOf } from '../../support/grounds/tables';
import { ROOT } from './folder';

/** Writes the tables of these results into the pages. */
export function writePages(cells: readonly Cell[], results: ReadonlyMap<string, Result>): void {
  const texts = textsOf(cells, results);
  for (const { page, mark } of PARTS) replacePart(page, mark, texts.get(mark) ?? '');
}

/** Writes a part of a page: what stands between its two marks. */
export function replacePart(page: string, name: string, text: string): void {
  const path = join(ROOT, page);
  const [begin, end] = [`<!-- Written by \`npm run grounds -- --page\`: ${name} -->`, `<!-- /${name} -->`];
  const [before = '', rest = ''] = readFileSync(path, 'utf8').split(begin);
  const [, after] = rest.split(end);
  if (after === undefined) throw new Error(`${page} has no part "${name}"`);
  writeFileSync(path, `${before}${begin}\n\n${text}\n\n${end}${after}`);
}
