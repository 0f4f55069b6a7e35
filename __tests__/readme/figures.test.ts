import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { ROOT, readPage } from './pages';

type Figures = Record<string, Record<string, { median: number }>>;

const { scenarios } = JSON.parse(readFileSync(join(ROOT, 'docs/benchmarks.json'), 'utf8')) as {
  scenarios: Record<string, { figures: Figures }>;
};

/** The columns of README's table of figures: where each stands in the file that the bench writes. */
const COLUMNS: readonly (readonly [scenario: string, metric: string, unit?: number])[] = [
  ['3', 'acquisitions, /s'],
  ['4a', 'acquisitions, /s'],
  ['4a', 'longest wait, ms', 1_000],
  ['4b', 'longest wait, ms', 1_000],
  ['4b', 'requests for each'],
];

const rows = readPage('README.md')
  .split('\n')
  .filter((line) => /^\|[^|]+(\| [\d.,]+( s)? ){5}\|$/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()));

it('README has a row of figures for each of ours and of the peers', () => {
  expect(rows.length).toBeGreaterThanOrEqual(6);
});

it.each(rows)('README has the figures of %s%s that the bench has measured', (_, name = '', ...cells) => {
  const [, id = name] = /`([^`]+)`/.exec(name) ?? [];
  for (const [i, [scenario, metric, unit = 1]] of COLUMNS.entries()) {
    const { median = Number.NaN } = scenarios[scenario]?.figures[id]?.[metric] ?? {};
    const cell = cells[i]?.replace(/,| s$/g, '') ?? '';
    const decimals = cell.split('.')[1]?.length ?? 0;
    const error = Math.max(0.5 / 10 ** decimals, 0.01 * (median / unit));
    expect(`${metric} of ${scenario}: ${Math.abs(Number(cell) - median / unit) <= error ? 'as measured' : cell}`).toBe(
      `${metric} of ${scenario}: as measured`,
    );
  }
});
