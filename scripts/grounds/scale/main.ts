import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { track } from '../../../support/grounds/children';
import { within } from '../../../support/grounds/within';
import { figure, markdownTable } from '../../../support/tables';
import { installUser } from '../folder';
import { replacePart } from '../page';
import { CLIENTS, titleOf } from '../versions';
import { Masters } from './cluster';

export interface ScaleOptions {
  /** Of each size: the last one is what is to be shown, those before it show what grows. */
  readonly processes: readonly number[];
  readonly callers: number;
  readonly keys: number;
  /** For all of it. */
  readonly minutes: number;
  readonly isForPage: boolean;
}

const MASTERS = 6;
const TYPES = ['spin', 'pub-sub', 'fair'] as const;
/** Keys that every fifth call is for. */
const HOT = 100;
/** ms between two slots that move. */
const PAUSE = 200;
/** ms until the last call of a process has ended, on a machine that has too much to do. */
const END = 180_000;

interface Seen {
  readonly locks: number;
  readonly overlaps: number;
  readonly disorder: number;
  readonly checks: number;
  readonly longest: number;
  readonly cpu: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly warnings: Readonly<Record<string, number>>;
}

/** Many processes on a cluster whose slots move. Returns whether each section was alone, and its tokens in order. */
export async function runScale(options: ScaleOptions): Promise<boolean> {
  const folder = await installUser('scale', CLIENTS['redis-6']);
  const masters = await Masters.start(MASTERS);
  const rows: string[][] = [];
  let isGood = true;
  try {
    for (const lockType of TYPES)
      for (const processes of options.processes) {
        const ms = (options.minutes * 60_000) / (TYPES.length * options.processes.length);
        const { row, good } = await runOne(masters, folder, { ...options, lockType, processes, ms });
        console.log(row.join(' | '));
        rows.push(row);
        isGood &&= good;
      }
  } finally {
    await masters.stop();
  }
  const text = `${markdownTable(HEAD, rows)}\n\n${about(options)}`;
  console.log(`\n${text}`);
  if (options.isForPage) replacePart('docs/trust.md', 'scale', text);
  return isGood;
}

const HEAD = [
  'type, processes',
  'locks',
  'overlaps',
  'tokens out of order',
  'calls that rejected',
  'longest wait, s',
  'scripts a lock',
  'CPU a lock, ms: processes',
  'servers',
  'slots moved',
];

function about({ callers, keys, minutes }: ScaleOptions): string {
  const day = new Date().toISOString().slice(0, 10);
  return `${callers} callers in each process, ${keys.toLocaleString('en')} keys, every fifth call to one of ${HOT}; ${MASTERS} masters; ${titleOf('redis-6')}; ${minutes} minutes in all. Seen on ${day}, by \`npm run grounds -- scale\`.`;
}

interface One {
  readonly lockType: string;
  readonly processes: number;
  readonly callers: number;
  readonly keys: number;
  readonly ms: number;
}

async function runOne(
  masters: Masters,
  folder: string,
  { lockType, processes, callers, keys, ms }: One,
): Promise<{ row: string[]; good: boolean }> {
  await masters.flush();
  const given = JSON.stringify({ ports: masters.ports, lockType, callers, keys, hot: HOT, ms });
  const workers: Worker[] = [];
  // A few at a time: each needs the processor to start.
  for (let i = 0; i < processes; i += 4) {
    const some = Array.from({ length: Math.min(4, processes - i) }, () => new Worker(folder, given));
    workers.push(...some);
    await Promise.all(some.map((one) => one.ready()));
  }
  const [before, movedBefore] = [await masters.usage(), masters.moved];
  const moving = masters.keepMoving(PAUSE);
  const results = await Promise.all(workers.map((one) => one.run(ms)));
  masters.stopMoving();
  await moving;
  const after = await masters.usage();
  const sum = (of: (seen: Seen) => number) => results.reduce((total, seen) => total + of(seen), 0);
  const locks = sum((seen) => seen.locks);
  const [overlaps, disorder] = [sum((seen) => seen.overlaps), sum((seen) => seen.disorder)];
  for (const kind of ['errors', 'warnings'] as const)
    for (const [what, times] of totals(results.map((seen) => seen[kind]))) console.log(`  ${kind}: ${times} ${what}`);
  const each = (value: number) => figure(Number((value / locks).toPrecision(2)));
  return {
    good: overlaps === 0 && disorder === 0 && locks > 0,
    row: [
      `\`${lockType}\`, ${processes}`,
      locks.toLocaleString('en'),
      String(overlaps),
      String(disorder),
      String(sum(({ errors }) => Object.values(errors).reduce((a, b) => a + b, 0))),
      figure(Number((Math.max(...results.map(({ longest }) => longest)) / 1_000).toPrecision(2))),
      each(after.scripts - before.scripts - sum((seen) => seen.checks)),
      each(sum((seen) => seen.cpu)),
      each(after.cpu - before.cpu),
      String(masters.moved - movedBefore),
    ],
  };
}

function totals(counts: readonly Readonly<Record<string, number>>[]): Map<string, number> {
  const all = new Map<string, number>();
  for (const [what, times] of counts.flatMap((one) => Object.entries(one))) all.set(what, (all.get(what) ?? 0) + times);
  return all;
}

/** One process of user/scale.mjs. */
class Worker {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #stderr = '';

  constructor(cwd: string, given: string) {
    const env = { ...process.env, NODE_OPTIONS: undefined, GROUNDS: given };
    this.#child = track(spawn(process.execPath, ['scale.mjs'], { cwd, env, stdio: 'pipe' }));
    this.#child.stderr.on('data', (chunk) => {
      this.#stderr = (this.#stderr + chunk).slice(-1_000);
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async ready(): Promise<void> {
    await within(60_000, 'its start', this.#line());
  }

  async run(ms: number): Promise<Seen> {
    this.#child.stdin.write('go\n');
    const seen = JSON.parse(await within(ms + END, 'its end', this.#line())) as Seen;
    if (this.#child.exitCode === null) await within(30_000, 'its exit', once(this.#child, 'exit'));
    return seen;
  }

  async #line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`a process ended: ${this.#stderr}`);
    return value;
  }
}
