import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Table from 'cli-table3';
import { FAULT_KINDS } from './faults';
import { type Entry, LIBRARIES } from './libraries';
import { TTL, WAIT } from './library';
import { versionOf } from './peers';
import type { Verdict } from './verdict';

export type Row = Verdict & { readonly library: string; readonly faults: number; readonly left: number };

export interface Setting {
  readonly seconds: number;
  readonly seed: number;
  readonly processes: number;
  readonly callers: number;
}

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

export function tableOf(rows: readonly Row[]): string {
  const table = new Table({ head: COLUMNS.map(([name]) => name), style: { head: [], border: [] }, wordWrap: true });
  for (const row of rows) table.push(COLUMNS.map(([, value]) => value(row)));
  return table.toString();
}

const markdownRow = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;

/** With the versions that are installed. */
function packagesOf({ packages, peer }: Entry): string {
  const version = (name: string) => {
    if (name === 'redis-lock-registry') return '(this checkout)';
    if (peer !== undefined) return versionOf(peer);
    const manifest = join(__dirname, '..', 'node_modules', name, 'package.json');
    return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
  };
  return packages.map((name) => `${name} ${version(name)}`).join(', ');
}

export function pageOf(
  rows: readonly Row[],
  leftOut: readonly string[],
  { seconds, seed, processes, callers }: Setting,
): string {
  const openings = rows.map(({ library }) => {
    const entry = LIBRARIES[library] as Entry;
    return markdownRow([library, packagesOf(entry), entry.settings, entry.tells]);
  });
  return `# The dock

The same faults for several lock libraries, and one judge. \`npm run torture -- --page\` writes this page; every number in it is from that run. It is in the style of Jepsen, and no more than that: one Redis with a replica, one busy machine, one seed, one run (${new Date().toISOString().slice(0, 10)}).

## What was done

${processes} processes with ${callers} callers each take one of three locks, over and over, for ${seconds} s, each library on a Redis of its own, with a replica. Leases of ${TTL} ms, calls wait for ${WAIT} ms. Most work takes up to 150 ms; a tenth of it takes longer than a lease. Meanwhile, one after the other: ${FAULT_KINDS.join(', ')}; of the seed ${seed}, in the same order for all. In a failover the master is killed, and its replica takes its place at the same address; it lacks what was written in the last moments, up to a second of them.

Every 20 ms each process asks its library whether it holds the lock, in the way that the library offers; one that asks Redis for that is asked again when it has answered, and its answer counts for the time of the question. After a pause of a process nothing is asked for 100 ms, so that the timers of the library come first. What the libraries said is judged:

- **two holders**: a caller entered while another one was told, before and after that moment, that it holds the lock; and the longest such time;
- **by failover**: the same, from a failover on until ${(2 * TTL) / 1_000} s after it. Redis may have lost a lock then, and only \`minReplicas\` promises anything for that. These aren't in the other columns, except for the last one;
- **never told**: the first of two such holders heard of no loss while it worked, and its release reported nothing;
- **never settled**: calls that had neither a lease nor an error ${(5 * WAIT) / 1_000} s after the last fault;
- **keys left**: keys in Redis when all leases had ended;
- **Porcupine rejects**: locks whose history Porcupine cannot explain, with the model of [What is proved](proof.md#the-judge). \`npm run torture -- --html FOLDER\` has Porcupine draw one failure of each library.

## What came of it

${markdownRow(COLUMNS.map(([name]) => name))}
${markdownRow(COLUMNS.map(([, value]) => (typeof value(rows[0] as Row) === 'number' ? '---:' : '---')))}
${rows.map((row) => markdownRow(COLUMNS.map(([, value]) => value(row)))).join('\n')}

## How to read it

Each library has its documented settings for one Redis; the time of a lease and the wait are the same for all.

| library | packages | settings | tells its holder by |
|---|---|---|---|
${openings.join('\n')}

- The numbers of one run are small, and another seed, or another run of this one, gives others. Here the machine was also busy with other work: a timer that comes late is counted as the word of its library, so times of up to some 100 ms say little. Calls and leases aren't a measure of speed: how soon a library rejects when Redis doesn't answer, and what it waits for between two tries, decide them.
- \`@verrou/core\` has no renewal and promises none: work that takes longer than the lease shows in \`isExpired()\`, and isn't counted against it.
- \`redis-semaphore\` renews at four fifths of its time-out by default, and tells of a loss when Redis has said so: it promises nothing for a process that was frozen, or that can't reach Redis.
- \`redlock\` is made for several independent servers; with one it keeps the same rules.
- A clock step is made for one process, as its \`Date.now()\` shows it, and is taken back after two seconds.
- The libraries of other languages run in programs of those languages (\`scripts/bench/peers\`), which are frozen together with the process that asks them. Their clocks are not set.
- \`redsync\`, \`bsm/redislock\` and \`redis-py\` have no renewal of their own, and promise none: as for \`@verrou/core\`, work that takes longer than the lease isn't counted against them.
- Redisson, \`bsm/redislock\` and \`redis-py\` ask Redis whether the lock is held. Who asks can't be told that it holds a lock that another one has, except by an answer that is late; but while Redis doesn't answer it knows nothing.
${leftOut.map((library) => `- Left out, because its language was not on the machine: ${library}.\n`).join('')}`;
}
