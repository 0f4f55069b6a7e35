import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(__dirname, '../../..');

/** Every page that a reader of the repository or of the package may open; paths from the root of the checkout. */
export const PAGES = ['.', 'docs', 'docs/examples'].flatMap((folder) =>
  readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
);

/** The files of the library, with their texts. */
export const SOURCES = readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file: `lib/${file}`, text: readFileSync(join(ROOT, 'lib', file), 'utf8') }));

/** The folders in a folder of the library. */
export function foldersOf(folder = ''): string[] {
  const entries = readdirSync(join(ROOT, 'lib', folder), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** A page without its fenced blocks of code. */
export function prose(page: string): string {
  return readPage(page).replace(/^```.*?^```$/gms, '');
}

/**
 * The cells of the rows of a table, without its head; the table is the first one below the heading, or the first whose
 * head begins with `head`.
 */
export function tableBelow(page: string, heading: string, head = ''): string[][] {
  const [, section = ''] = readPage(page).split(new RegExp(`^#+ ${heading}\n`, 'm'));
  const lines = section.split('\n');
  const first = lines.findIndex((line) => line.startsWith(head === '' ? '|' : `| ${head} |`));
  if (first < 0) throw new Error(`${page} has no table below "${heading}"`);
  const end = lines.findIndex((line, i) => i > first && !line.startsWith('|'));
  const rows = lines.slice(first + 2, end < 0 ? undefined : end);
  return rows.map((row) => row.split(/(?<!\\)\|/).slice(1, -1)).map((cells) => cells.map((cell) => cell.trim()));
}

/** What stands in `backticks`; inside a table a vertical bar is escaped. */
export function codeSpans(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replaceAll('\\|', '|'));
}
