import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './folder';

/** Writes a part of a page: what stands between its two marks. */
export function replacePart(page: string, name: string, text: string): void {
  const path = join(ROOT, page);
  const [begin, end] = [`<!-- Written by \`npm run grounds -- --page\`: ${name} -->`, `<!-- /${name} -->`];
  const [before = '', rest = ''] = readFileSync(path, 'utf8').split(begin);
  const [, after] = rest.split(end);
  if (after === undefined) throw new Error(`${page} has no part "${name}"`);
  writeFileSync(path, `${before}${begin}\n\n${text}\n\n${end}${after}`);
}
