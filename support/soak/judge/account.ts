import type { WorkerRecord } from '../../judge/records';
import type { Violation } from '../../judge/violations';
import type { FaultEntry } from '../faults/fault-journal';

/** ms before and after a violation of which an account is given. */
const NEIGHBOURHOOD = 3_000;
/** Lines of an account, those nearest to the violation. */
const LINES = 100;

/** What happened around a violation: its leases, the other calls for the same key, and the faults, in order of time. */
export function accountOf(
  violation: Violation,
  records: readonly WorkerRecord[],
  faults: readonly FaultEntry[],
  startedAt: number,
): string {
  const calls = new Set(violation.calls);
  const { key } = violation;
  const takesIt = (r: WorkerRecord) => r.event === 'called' && key !== undefined && [r.key, ...r.others].includes(key);
  const ofKey = new Set(records.flatMap((r) => (r.event === 'called' && takesIt(r) ? [r.call] : [])));
  const lines = [
    ...records.flatMap((record) => {
      const isAbout =
        'call' in record && (calls.has(record.call) || (ofKey.has(record.call) && record.event !== 'seen'));
      if (!isAbout) return [];
      return [{ at: timeOf(record), text: `${calls.has(record.call) ? '*' : ' '} ${textOf(record)}` }];
    }),
    ...faults.flatMap(({ kind, target, from, to }) => [
      { at: from, text: `! ${kind} on ${target} begins` },
      { at: to, text: `! ${kind} on ${target} is over` },
    ]),
  ]
    .filter(({ at }) => Math.abs(at - violation.at) < NEIGHBOURHOOD)
    .sort((a, b) => Math.abs(a.at - violation.at) - Math.abs(b.at - violation.at))
    .slice(0, LINES)
    .sort((a, b) => a.at - b.at);
  const seconds = (at: number) => ((at - startedAt) / 1_000).toFixed(4).padStart(10);
  return [
    `${violation.kind}: ${violation.text} (at ${seconds(violation.at).trim()} s)`,
    ...lines.map(({ at, text }) => `  ${seconds(at)}  ${text}`),
  ].join('\n');
}

function timeOf(record: WorkerRecord): number {
  return 'sample' in record ? record.sample.to : record.at;
}

function textOf(record: Exclude<WorkerRecord, { event: 'violation' }>): string {
  switch (record.event) {
    case 'called':
      return `${record.call} calls ${record.what} for "${record.key}"`;
    case 'granted':
      return `${record.call} is granted token ${record.token}, remaining ${record.sample.remaining.toFixed(1)} ms`;
    case 'seen':
    case 'unlocking':
      return `${record.call} ${record.event}, remaining ${record.sample.remaining.toFixed(1)} ms`;
    case 'lost':
      return `${record.call} lost (${record.reason}${record.by === undefined ? '' : `, by ${record.by}`})`;
    case 'asked':
      return `${record.call} has asked the holder, ${record.isHeard ? 'which heard it' : 'and nobody heard it'}`;
    case 'settled':
      return `${record.call} settled: ${record.outcome}`;
  }
}
