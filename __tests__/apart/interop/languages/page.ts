import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Cells, markdownTable } from '../../../../support/tables';
import { type Figures, keptFigures } from './figures';
import type { Library } from './language';
import { LANGUAGES } from './languages';

const PAGE = join(__dirname, '../../../../docs/other-languages.md');

interface PageTable {
  /** Between `<!-- NAME: … -->` and `<!-- /NAME -->`, each alone on its line. */
  readonly name: string;
  readonly head: Cells;
  cells(library: Library, figures: Figures): Cells;
}

const TABLES: readonly PageTable[] = [
  {
    name: 'libraries',
    head: [
      'library',
      'name there',
      '`registryKey`, `key` here',
      'owner in Redis',
      'expiry by default',
      'says of our lock',
    ],
    cells: ({ there, registryKey, key, tokenText, expiry, about }) => [
      `\`${there.replace('NAME', 'a')}\``,
      `\`'${registryKey}'\`, \`'${key.replace('NAME', 'a')}'\``,
      tokenText,
      expiry,
      `\`${about}\``,
    ],
  },
  {
    name: 'waiting',
    head: [
      'library',
      'a waiter there',
      'our release wakes it after',
      'its release wakes `spin`',
      '`pub-sub`',
      '`fair`',
      'turns, ours : theirs, beside `spin`',
      '`pub-sub`',
      '`fair`',
      'longest wait of a side',
      'run on',
    ],
    cells: ({ waits }, { date, wakesOurs, wakesTheirs, shares }) => [
      waits,
      delays(wakesTheirs),
      ...(['spin', 'pub-sub', 'fair'] as const).map((type) => delays(wakesOurs[type])),
      ...(['spin', 'pub-sub', 'fair'] as const).map((type) => `${shares[type]?.ours} : ${shares[type]?.theirs}`),
      seconds(
        Math.max(...Object.values(shares).flatMap(({ longestOurs, longestTheirs }) => [longestOurs, longestTheirs])),
      ),
      date,
    ],
  },
];

/** The middle one, and the longest. */
function delays(all: readonly number[] = []): string {
  const sorted = [...all].sort((a, b) => a - b);
  return `${sorted[Math.floor(sorted.length / 2)]} ms, ≤ ${sorted.at(-1)} ms`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** Writes the rows of the libraries that were run, in the order of `LANGUAGES`, and keeps those of the others. */
export function writePage(): void {
  const figures = keptFigures();
  let text = readFileSync(PAGE, 'utf8');
  for (const table of TABLES) text = withTable(text, table, figures);
  writeFileSync(PAGE, text);
}

function withTable(text: string, { name, head, cells }: PageTable, figures: ReadonlyMap<string, Figures>): string {
  const block = new RegExp(`(<!-- ${name}:[^\\n]*-->\\n)(.*?)(<!-- /${name} -->)`, 's');
  const [, , before] = block.exec(text) ?? [];
  if (before === undefined)
    throw new Error(`docs/other-languages.md has no block between <!-- ${name}: … --> and <!-- /${name} -->`);
  const rows = LANGUAGES.flatMap(({ title: language, libraries }) =>
    libraries.flatMap((library) => {
      if (library.isVariant) return [];
      const first = `${language} ${library.title}, `;
      const measured = figures.get(library.id);
      if (measured !== undefined) return [[`${first}${library.version}`, ...cells(library, measured)]];
      const kept = before.split('\n').find((line) => line.startsWith(`| ${first}`));
      return kept === undefined ? [] : [kept.slice(2, -2).split(' | ')];
    }),
  );
  return text.replace(block, (_, begin, __, end) => `${begin}${markdownTable(head, rows, () => false)}\n${end}`);
}
