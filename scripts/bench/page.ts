import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { README_CANDIDATES, withReadmeTable } from '../../support/readme-table';
import { withSection } from '../../support/sections';
import { figure, markdownTable } from '../../support/tables';
import type { Metric } from './figures';
import { judged } from './goals';
import { candidateNamed } from './libraries';
import { type Figure, measuresOf, pictureOf, ratio, remarks, type ScenarioResult, versions } from './report';
import { nameOf, type Scenario, scenarios } from './scenarios';

/**
 * What was measured is kept in docs/benchmarks.json: every candidate, every figure, with its range, and when. The tables
 * of docs/trust.md and README.md are made of that file and show the medians that somebody may want to read.
 */

const DOCS = join(__dirname, '..', '..', 'docs');
const DATA = join(DOCS, 'benchmarks.json');
const PAGE = join(DOCS, 'trust.md');
const README = join(DOCS, '..', 'README.md');

interface Measured {
  /** When and where, and how many rounds. */
  readonly measured: string;
  readonly remarks: readonly string[];
  /** By the id of a candidate and by metric. */
  readonly figures: Readonly<Record<string, Readonly<Record<string, Figure>>>>;
}

interface Data {
  versions: Record<string, string>;
  /** By the id of a scenario; those of a curve by its id and the size. */
  scenarios: Record<string, Measured>;
}

export function readData(): Data {
  return JSON.parse(readFileSync(DATA, 'utf8')) as Data;
}

/** Puts what was measured into the file and the page. What was not measured now stays as it is. */
export function writePage(results: readonly ScenarioResult[], measured: string): void {
  const data = readData();
  data.versions = versions();
  for (const result of results) {
    const { scenario, rows } = result;
    data.scenarios[nameOf(scenario)] = { measured, remarks: remarks(rows), figures: measuresOf(rows) };
  }
  writeFileSync(DATA, textOf(data));
  let page = readFileSync(PAGE, 'utf8');
  for (const section of [figuresSection(data), growthSection(data), goalsSection(data)])
    if (section !== undefined) page = withSection(page, section, /^### Goals$|^### Why goals are missed$/m);
  writeFileSync(PAGE, page);
  writeFileSync(README, withReadmeTable(readFileSync(README, 'utf8'), data));
}

/** JSON with a line for each figure, so that a difference shows what has changed. */
function textOf(data: Data): string {
  return `${JSON.stringify(data, null, 2).replace(/\{\s+("median"[^}]*?)\s+\}/g, (_, fields: string) => `{ ${fields.replace(/\s+/g, ' ')} }`)}\n`;
}

/** The columns of the first table: the floor of each scenario, ours, and the peers that are used most. */
const COLUMNS = ['floor', 'spin', 'pub-sub', 'fair', 'redlock', 'redis-semaphore', 'verrou'];
const OURS = COLUMNS.slice(1, 4);
/** No share of the floor: a count near zero, for which the quotient says nothing. */
const COUNTS: readonly Metric[] = ['requests for each'];

/** The figures of a scenario that the first table shows. */
const SHOWN: readonly (readonly [scenario: string, ...metrics: Metric[]])[] = [
  ['1', 'p50, µs', 'p99, µs'],
  ['3', 'acquisitions, /s', 'requests for each', 'longest wait, ms'],
  ['4a', 'acquisitions, /s', 'longest wait, ms'],
  ['4b', 'acquisitions, /s', 'requests for each', 'wait, p99, ms', 'longest wait, ms'],
  ['4t', 'acquisitions, /s', 'wait, p99, ms'],
  ['8', 'hand-over in PINGs'],
];

/** Candidates that are listed below it, each with the scenario and the figures that are about it. */
const OTHERS: readonly (readonly [scenario: string, candidates: readonly string[], ...metrics: Metric[]])[] = [
  ['1', ['spin-ioredis'], 'p50, µs'],
  ['10', ['spin', 'replicated'], 'cycles, /s', 'p50, µs'],
  ['11', ['semaphore', 'redis-semaphore-semaphore'], 'acquisitions, /s', 'requests for each', 'wait, p99.9, ms'],
  ['13', ['read-write'], 'reads, /s', 'writes, /s', 'wait of readers, p99.9, ms', 'wait of writers, p99.9, ms'],
];

/** The candidates of a scenario that the tables show, and what goals compare them with. Of a curve, all: none is named. */
export function shownOf({ id, point, goals = [] }: Scenario): readonly string[] {
  if (point !== undefined) return [];
  const compared = goals.flatMap(([, , , , to]) => to ?? []);
  return [...COLUMNS, ...README_CANDIDATES, ...compared, ...OTHERS.flatMap(([of, names]) => (of === id ? names : []))];
}

const OWN_PACKAGE = 'redis-lock-registry';

const scenarioNamed = (name: string) => scenarios.find(({ id }) => id === name) as (typeof scenarios)[number];

function figuresSection(data: Data): string {
  const all = data.scenarios;
  const rows = SHOWN.flatMap(([id, ...metrics]) => {
    const { title, floor = '' } = scenarioNamed(id);
    const figures = all[id]?.figures ?? {};
    const measured = metrics.flatMap((metric) => {
      const cells = COLUMNS.map((name) => {
        const one = figures[name === 'floor' ? floor : name]?.[metric];
        if (one === undefined) return '–';
        const hasRatio = one.ratio !== undefined && OURS.includes(name) && !COUNTS.includes(metric);
        const toFloor = hasRatio ? ` (${ratio(one.ratio)})` : '';
        return figure(one.median) + toFloor;
      });
      return cells.every((cell) => cell === '–') ? [] : [[metric, ...cells]];
    });
    return measured.map((cells, i) => [i === 0 ? `**${id}.** ${title}` : '', ...cells]);
  });
  const others = OTHERS.flatMap(([id, names, ...metrics]) =>
    names.flatMap((name) => {
      const figures = all[id]?.figures[name];
      if (figures === undefined) return [];
      const measured = metrics.filter((metric) => figures[metric] !== undefined);
      const shown = measured.map((metric) => `${metric}: ${figure(figures[metric]?.median)}`);
      return [`- **${id}**, ${candidateNamed(name).title}: ${shown.join('; ')}`];
    }),
  );
  const ids = new Set([...SHOWN, ...OTHERS].map(([id]) => id).filter((id) => all[id] !== undefined));
  const measuredBy = new Set([...ids].flatMap((id) => Object.keys(all[id]?.figures ?? {})));
  const packages = new Set([...measuredBy].flatMap((name) => candidateNamed(name).packages));
  const used = Object.entries(data.versions).filter(([name]) => name === OWN_PACKAGE || packages.has(name));
  return [
    '### Figures',
    markdownTable(['', '', ...COLUMNS], rows, (column) => column > 1),
    ...(others.length === 0 ? [] : [others.join('\n')]),
    measuredLines(data, ids).join('\n\n'),
    `Packages: ${used.map(([name, version]) => `${name} ${version}`).join(', ')}.`,
  ].join('\n\n');
}

/** When and where the scenarios were measured, and in how many rounds: those of one machine and day together. */
function measuredLines({ scenarios: all }: Data, ids: ReadonlySet<string>): string[] {
  const runs = new Map<string, Map<string, string[]>>();
  for (const id of ids) {
    const [where = '', rounds = ''] = (all[id]?.measured ?? '').split('; rounds: ');
    const ofRun = runs.get(where) ?? new Map<string, string[]>();
    runs.set(where, ofRun.set(rounds, [...(ofRun.get(rounds) ?? []), id]));
  }
  return [...runs].map(([where, ofRun]) => {
    const rounds = [...ofRun].map(([count, of]) => `${count} rounds of ${of.join(', ')}`);
    return `${where}; ${rounds.join('; ')}.`;
  });
}

/** The goals of what was measured that one of our types misses: a row for all types that have the same one. */
export function goalsSection({ scenarios: all }: Pick<Data, 'scenarios'>): string {
  const goals = scenarios.flatMap((one) => judged(one, all[nameOf(one)]?.figures ?? {}));
  const titles = OURS.map((name) => candidateNamed(name).title);
  const rows = new Map<string, string[]>();
  for (const { scenario, candidate, metric, wanted, value, isMet } of goals) {
    const column = titles.indexOf(candidate);
    const what = column < 0 ? `${candidate.replace('ours: ', '')}: ${metric}` : metric;
    const id = [scenario, what, wanted].join();
    const row = rows.get(id) ?? [`**${scenario}**`, what, wanted, ...OURS.map(() => '–')];
    row[3 + Math.max(column, 0)] = isMet ? figure(value) : `**${figure(value)}**`;
    rows.set(id, row);
  }
  const missed = goals.filter(({ isMet }) => !isMet).length;
  const missedRows = [...rows.values()].filter((row) => row.some((cell, i) => i > 2 && cell.startsWith('**')));
  return [
    '### Goals',
    `${missed} of ${goals.length} goals of speed are missed, in bold.`,
    markdownTable(['', '', 'goal', ...OURS], missedRows, (column) => column > 1),
  ].join('\n\n');
}

/** Nothing while no curve is measured whole. */
function growthSection({ scenarios: all }: Data): string | undefined {
  const curves = [...new Set(scenarios.flatMap(({ point }) => point?.curve ?? []))];
  const pictures = curves.flatMap((curve) => {
    const points = curve.sizes.map((size) => all[`${curve.id} ${size}`]?.measured);
    const measured = points.at(-1);
    return measured === undefined || points.includes(undefined)
      ? []
      : [`![${curve.title}](${pictureOf(curve)})`, `**${curve.id}.** ${measured}`];
  });
  if (pictures.length === 0) return undefined;
  return ['### Growth', 'How cost grows with size. Both scales of a picture are logarithmic.', ...pictures].join(
    '\n\n',
  );
}
