import Table from 'cli-table3';
import { SERVER_FAULTS } from './faults/server-faults';
import { WORKER_FAULTS } from './faults/worker-faults';
import type { SoakResult } from './results';

const style = { head: [], border: [] };

/** What each type did, and what was done to it. */
export function tables(results: readonly SoakResult[]): string {
  return `${work(results)}\n\n${faults(results)}`;
}

function work(results: readonly SoakResult[]): string {
  const columns: [string, (result: SoakResult) => number][] = [
    ['rounds', ({ rounds }) => rounds],
    ['acqui-\nsitions', ({ acquisitions }) => acquisitions],
    ['in calm', ({ inCalm }) => inCalm],
    ['re-\nplaced', ({ replaced }) => replaced],
    ['asked', ({ asked }) => asked],
    ['timed\nout', ({ outcomes }) => outcomes['timed out']],
    ['refused', ({ outcomes }) => outcomes.refused],
    ['aborted', ({ outcomes }) => outcomes.aborted],
    ['lost', ({ outcomes }) => outcomes.lost],
    ['unavail-\nable', ({ outcomes }) => outcomes.unavailable],
    ['release\nunknown', ({ outcomes }) => outcomes['release unknown']],
    ['closed', ({ outcomes }) => outcomes.closed],
    ['killed', ({ killed }) => killed],
    ['faults', ({ faults: counts }) => Object.values(counts).reduce((sum, count) => sum + count, 0)],
    ['viola-\ntions', ({ violations }) => violations.length],
  ];
  return table('', columns, results);
}

function faults(results: readonly SoakResult[]): string {
  const kinds = [...WORKER_FAULTS, ...SERVER_FAULTS];
  return table(
    'faults',
    kinds.map((kind) => [kind.replaceAll(' ', '\n'), ({ faults: counts }) => counts[kind] ?? 0]),
    results,
  );
}

function table(
  corner: string,
  columns: readonly [string, (result: SoakResult) => number][],
  results: readonly SoakResult[],
): string {
  const built = new Table({
    head: [corner, ...columns.map(([title]) => title)],
    colAligns: ['left', ...columns.map(() => 'right' as const)],
    style,
  });
  for (const result of results) built.push([result.type, ...columns.map(([, value]) => value(result))]);
  return built.toString();
}
