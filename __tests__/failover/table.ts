import { afterAll } from '@jest/globals';
import Table from 'cli-table3';
import type { Outcome } from './load';

const HEAD = [
  'fault',
  'lock type',
  'entries',
  'longest pause',
  'longest wait',
  'double holding',
  'lost',
  'learned after',
  'lock rejected',
  'unlock rejected',
  'keys left',
];

const rows: { readonly fault: string; readonly outcome: Outcome }[] = [];

/** For the table that is printed at the end of the file's tests. */
export function addRow(fault: string, outcome: Outcome): void {
  rows.push({ fault, outcome });
}

afterAll(() => {
  const cells = rows.splice(0).map(({ fault, outcome }) => {
    const { lockType, entries, pause, wait, double, lost, learned, rejected, unlocks, left } = outcome;
    const learnedAfter = learned === undefined ? '-' : `${learned} ms`;
    const times = [`${pause} ms`, `${wait} ms`, `${double} ms`];
    return [fault, lockType, entries, ...times, `${lost} of 2`, learnedAfter, rejected.length, unlocks, left.length];
  });
  if (cells.length === 0) return;
  const table = new Table({ head: HEAD, style: { head: [], border: [], compact: true } });
  table.push(...cells);
  process.stdout.write(`${table}\n`);
});
