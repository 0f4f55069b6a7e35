import { markdownTable } from '../../../support/tables';
import { installedVersion, terminalTable } from '../report';
import { type Entry, LIBRARIES } from './libraries';
import { versionOf } from './peers';
import type { Verdict } from './verdict';

export type Row = Verdict & { readonly library: string; readonly faults: number; readonly left: number };

const COLUMNS: readonly (readonly [string, (row: Row) => string | number])[] = [
  ['library', ({ library }) => library],
  ['faults', ({ faults }) => faults],
  ['calls', ({ calls }) => calls],
  ['leases', ({ leases }) => leases],
  ['two holders', ({ double }) => double],
  ['longest, ms', ({ longest }) => longest],
  ['by failover', ({ failedOver }) => failedOver],
  ['never told', ({ untold }) => untold],
  ['never settled', ({ pending }) => pending],
  ['keys left', ({ left }) => left],
  ['wait, median', ({ median }) => median],
  ['p99, ms', ({ p99 }) => p99],
  ['Porcupine rejects', ({ porcupineRejects }) => porcupineRejects.join(' ') || 'nothing'],
];
const HEAD = COLUMNS.map(([name]) => name);
/** What a page leaves out: it says little of a library. */
const NOT_ON_PAGE = ['faults', 'calls', 'wait, median', 'p99, ms'];

const cellsOf = (row: Row) => COLUMNS.map(([, value]) => String(value(row)));

export function tableOf(rows: readonly Row[]): string {
  return terminalTable(
    HEAD.map((name) => name.replace(' ', '\n')),
    rows.map(cellsOf),
  );
}

/** With the versions that are installed. */
function packagesOf({ packages, peer }: Entry): string {
  const version = (name: string) => {
    if (name === 'redis-lock-registry') return '(this checkout)';
    return peer === undefined ? installedVersion(name) : versionOf(peer);
  };
  return packages.map((name) => `${name} ${version(name)}`).join(', ');
}

/** What a run gave, a section of docs/trust.md, and how each library was opened, one of docs/spec/README.md. */
export function sectionsOf(
  rows: readonly Row[],
  leftOut: readonly string[],
  setting: string,
): { readonly results: string; readonly settings: string } {
  const onPage = COLUMNS.filter(([name]) => !NOT_ON_PAGE.includes(name));
  // A column of zeros is a sentence.
  const zeros = onPage.filter(([, value]) => rows.every((row) => value(row) === 0));
  const columns = onPage.filter((column) => !zeros.includes(column));
  const isNumber = (column: number) => typeof columns[column]?.[1](rows[0] as Row) === 'number';
  const cells = rows.map((row) => columns.map(([, value]) => String(value(row))));
  const allZero = zeros.length > 0 ? [`0 in every row: ${zeros.map(([name]) => `**${name}**`).join(', ')}.`] : [];
  const settings = rows.map(({ library }) => {
    const entry = LIBRARIES[library] as Entry;
    return [library, packagesOf(entry), entry.settings, entry.tells];
  });
  const missing = leftOut.map((library) => ` Left out, because its language was not on the machine: ${library}.`);
  const ran = `${setting}; ${new Date().toISOString().slice(0, 10)}.${missing.join('')}`;
  const same = 'Each has its documented settings for one Redis; the time of a lease and the wait are the same for all.';
  const head = ['library', 'packages', 'settings', 'tells its holder by'];
  return {
    results: [
      '### Results',
      markdownTable(
        columns.map(([name]) => name),
        cells,
        isNumber,
      ),
      ...allZero,
      ran,
    ].join('\n\n'),
    settings: ['## Settings of each library', same, markdownTable(head, settings, () => false)].join('\n\n'),
  };
}
