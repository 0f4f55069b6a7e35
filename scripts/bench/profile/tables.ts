import { figure } from '../report/format';
import type { Cost, Profile } from './measure-profile';
import { OWNERS, type Owner } from './owners';
import { BURST, HELD, type Subject } from './subjects';

export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** bytes; smaller parts of a held lease are one row. */
const SMALL_PART = 8;

const FIGURES = {
  kernel: 'of it in the kernel, µs',
  server: 'CPU of the server, µs',
  sleeps: 'times that a process slept',
  requests: 'requests',
  reads: 'reads of the server',
  sent: 'bytes sent',
  received: 'bytes received',
  rightAfter: 'heap right after, B',
  collected: 'heap after a collection, B',
} as const;

type FigureName = keyof typeof FIGURES;

const OF_CPU: readonly FigureName[] = ['kernel', 'server', 'sleeps', 'requests', 'reads', 'sent', 'received'];
const OF_BURST: readonly FigureName[] = ['rightAfter', 'collected', 'sent', 'received'];

export function headingOf({ id, title, unit }: Subject): string {
  return `${id}. ${title}, for each ${unit}`;
}

export function tableOf({ subject, costs }: Profile): Table {
  const title = headingOf(subject);
  const candidates = costs.map(({ candidate }) => candidate.title);
  if (subject === HELD) return { title, head: ['bytes', ...candidates], rows: rowsOfParts(costs) };
  const [unit, total, names] =
    subject === BURST
      ? (['bytes allocated', 'allocated', OF_BURST] as const)
      : (['µs of client CPU', 'cpu', OF_CPU] as const);
  const partOf = ({ figures, shares }: Cost, owner: Owner) =>
    ((figures[total] ?? Number.NaN) * (shares.byOwner.get(owner) ?? 0)) / shares.total;
  const owners = (Object.keys(OWNERS) as Owner[]).filter((owner) => costs.some((cost) => partOf(cost, owner) > 0));
  return {
    title,
    head: [unit, ...candidates],
    rows: [
      ...owners.map((owner) => [OWNERS[owner].title, ...costs.map((cost) => amount(partOf(cost, owner)))]),
      ['all', ...costs.map(({ figures }) => amount(figures[total]))],
      ...names.map((name) => [FIGURES[name], ...costs.map(({ figures }) => amount(figures[name]))]),
    ],
  };
}

/** The functions that took most of the library's own part, or the floor's. */
export function hottestFunctions({ shares }: Cost, count: number): string[] {
  return [...shares.byFunction]
    .filter(([name]) => /^(lib|scripts\/bench\/candidates\/(floor|raw|local))/.test(name))
    .sort(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([name, self]) => `${figure((100 * self) / shares.total)} % ${name}`);
}

function rowsOfParts(costs: readonly Cost[]): string[][] {
  const bytesOf = ({ parts }: Cost, name: string) => parts.find((part) => part.name === name)?.bytes ?? 0;
  const names = [...new Set(costs.flatMap(({ parts }) => parts.map(({ name }) => name)))];
  const large = names.filter((name) => costs.some((cost) => bytesOf(cost, name) >= SMALL_PART));
  const most = (name: string) => Math.max(...costs.map((cost) => bytesOf(cost, name)));
  const sumOf = (cost: Cost, some: readonly string[]) => some.reduce((sum, name) => sum + bytesOf(cost, name), 0);
  return [
    ...large
      .sort((a, b) => most(b) - most(a))
      .map((name) => [name, ...costs.map((cost) => amount(bytesOf(cost, name)))]),
    [
      'smaller parts',
      ...costs.map((cost) =>
        amount(
          sumOf(
            cost,
            names.filter((name) => !large.includes(name)),
          ),
        ),
      ),
    ],
    ['all', ...costs.map((cost) => amount(sumOf(cost, names)))],
  ];
}

function amount(value = Number.NaN): string {
  return figure(Number(value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)));
}
