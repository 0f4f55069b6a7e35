import type { Options } from '../options';
import { isShared } from '../processors';
import type { Row, ScenarioResult, Spread } from '../results';
import type { Verdict } from '../targets';
import { figure, ratio, verdict } from './format';
import type { Circumstances } from './machine';

/** The page that is checked in: everything that was measured, the unfavourable too. */
export function page(
  about: Circumstances,
  options: Options,
  results: readonly ScenarioResult[],
  verdicts: readonly Verdict[],
): string {
  return [
    '# Benchmarks',
    'Written by `npm run bench -- --page`; do not edit.',
    introduction(about, options),
    '## Targets',
    'What this library wants of itself, against the floor and the best of the peers. A figure that misses its target stays here.',
    table(
      ['', 'target', 'scenario', 'measured', ''],
      verdicts.map((one) => [one.candidate, one.target, one.scenario, figure(one.value), verdict(one)]),
    ),
    ...reasons(verdicts),
    ...results.map(section),
    method(options),
    '## Versions',
    table(['package', 'version'], Object.entries(about.versions)),
  ]
    .join('\n\n')
    .concat('\n');
}

/** What the measurements say of the targets that were missed. */
function reasons(verdicts: readonly Verdict[]): string[] {
  const known = verdicts.filter(({ why }) => why !== undefined);
  if (known.length === 0) return [];
  const lines = known.map(
    ({ candidate, scenario, target, why }) => `- ${candidate}, scenario ${scenario}, ${target}: ${why}.`,
  );
  return ['Why, where the measurements tell:', lines.join('\n')];
}

function introduction(about: Circumstances, { quick, rounds }: Options): string {
  const size = quick
    ? `A quick run (${rounds === 1 ? 'one round' : `${rounds} rounds`}, short windows, without the variants of a peer or a scenario).`
    : `${rounds} rounds.`;
  return `${about.date}. ${about.cpu}, ${about.cores} cores, ${about.memory} GiB, ${about.system}; Node ${about.node}, ${about.redis}. ${size}`;
}

function section({ scenario, rows }: ScenarioResult): string {
  const faults = rows.filter(({ fault }) => fault !== undefined);
  const intruded = rows.filter(({ violations }) => violations > 0);
  return [
    `## ${scenario.id}. ${scenario.title}`,
    ...(scenario.floor === undefined
      ? []
      : [`Ratios (×) to \`${rows.find(({ id }) => id === scenario.floor)?.title}\` in the same round.`]),
    table(
      ['', ...scenario.metrics.map(({ title, unit }) => `${title}${unit && `, ${unit}`}`)],
      rows.map((row) => [row.title, ...scenario.metrics.map(({ id }) => cell(row, id))]),
    ),
    ...faults.map(({ title, fault }) => `${title} did not run: ${fault}.`),
    ...intruded.map(({ title, violations }) => `**No exclusion**: ${title} let ${violations} intruders in.`),
  ].join('\n\n');
}

function cell({ values, ratios }: Row, metric: string): string {
  const value = values[metric];
  const toFloor = ratios[metric];
  if (value === undefined) return '–';
  return toFloor === undefined ? spread(value, figure) : `${spread(value, figure)}<br>${spread(toFloor, ratio)}`;
}

/** The median, and the least and the greatest where they say more. */
function spread({ median, least, greatest }: Spread, format: (value: number) => string): string {
  const [middle, low, high] = [median, least, greatest].map(format);
  return low === high ? String(middle) : `${middle} (${low} – ${high})`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

function method({ quick, rounds }: Options): string {
  return `## Method

- One private Redis without persistence, on loopback; it is emptied before each candidate. Every candidate runs in processes of its own, new in every round, and warms up before it is measured.
- A round measures all candidates one after the other, and each round begins with another one. In scenarios 1 and 2 the processes of all candidates are there at the same time and take turns of 50 to 120 ms, several in each round, so that whatever else the machine does disturbs all alike; there, such a turn counts as a round. A ratio is that to the floor *of the same round*. Cells show the median of ${rounds === 1 ? 'one round' : `${rounds} rounds`}, with the least and the greatest.
- ${isShared ? 'The server has a processor for itself, and the processes of the candidates have the others: whether the scheduler puts a client beside the server is chance otherwise, and makes a factor of three for a round trip.' : 'Server and candidates share all processors (there is no `taskset` here to separate them), which makes the figures less steady.'} A process of the lowest priority keeps each processor awake: to wake one takes longer than a round trip on loopback.
- The floor is no library: node-redis with its timeout for each command switched off, and the fewest commands that do the work. It has no deadlines, no renewal, no errors that tell what happened.
- Ours is the built package on a client with default options, used as its README says: with renewal, and with a deadline for each command. Peers have their own defaults, on the driver that they are made for; only their patience is unlimited, where they would give up after a number of tries. They poll at their own default intervals: redlock and @sesamecare-oss/redlock every 200 ms ± 100 ms, redlock-universal every 100 ms, redis-semaphore every 10 ms, @verrou/core every 250 ms.
- Requests are counted by the server (\`INFO commandstats\`). It counts calls inside of scripts as well; which part of the calls of a command come from clients is learnt by a MONITOR during the warm-up. CPU is that of the whole process, \`process.cpuUsage()\` and \`INFO cpu\`.
- Exclusion is checked in every contended scenario: all entries and exits of all processes, on the clock of the machine, are put in one order. An overlap fails the run.
- A wait that has not ended when the window does counts with what it lasted until then: for who starves, that is less than the truth. "Overtaken" counts for each acquisition the callers that had asked earlier and were still waiting.
- Scenario 7 weighs the heap after a forced garbage collection, with ${quick ? '1,000' : '2,000'} locks of each kind; the names of the keys, which are the caller's, are not counted. "Idle" is the object that stands for a lock, after it was used; libraries without one show none.
- Scenario 8 has a proxy in a process of its own between the clients and the server, which holds every byte back for 10 ms each way; the unit is a PING through it.`;
}
