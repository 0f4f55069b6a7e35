/** `npm run judge`: exit code 0; 1 when a history is rejected, or the judges differ; 2 for a wrong option. */

import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { runMain } from '../run-main';
import { type Judgement, judgeByBoth } from './both';
import { histories, recordsIn } from './folders';

const USAGE = `npm run judge -- [options] FOLDER...
  Judges histories twice: by the judge of the soak, and by Porcupine. \`npm run soak -- --records FOLDER\` writes them, and
  \`RECORDS=FOLDER npm run test:failover\`. Each folder with files *.jsonl is one history, each file a process.
  --compare    only a difference between the judges fails: some histories are rejected for good reasons
  --html FILE  where Porcupine draws the first history that it rejects`;

const isRejected = ({ own, porcupineKeys, unknown }: Judgement) =>
  own.length + porcupineKeys.length + unknown.length > 0;
const differ = ({ ownKeys, porcupineKeys }: Judgement) => ownKeys.join('\n') !== porcupineKeys.join('\n');

function main(): number {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      compare: { type: 'boolean', default: false },
      html: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help || positionals.length === 0) {
    console.log(USAGE);
    return values.help ? 0 : 2;
  }
  const head = ['history', 'leases', 'keys', 'own judge rejects', 'Porcupine rejects', 'they differ'];
  const table = new Table({ head, style: { head: [], border: [] } });
  let html = values.html;
  let failed = 0;
  for (const root of positionals) {
    for (const folder of histories(root)) {
      const judgement = judgeByBoth(recordsIn(folder), html);
      const { leases, keys, own, ownKeys, porcupineKeys, unknown } = judgement;
      if (porcupineKeys.length > 0) html = undefined;
      const timedOut = unknown.length > 0 ? `, no verdict for ${unknown.join(' ')}` : '';
      const cells = [ownKeys.join(' '), porcupineKeys.join(' ') + timedOut, differ(judgement) ? 'YES' : ''];
      table.push([relative(process.cwd(), folder), leases, keys, ...cells]);
      for (const text of own.slice(0, 5)) console.log(`${folder}: ${text}`);
      if (differ(judgement) || (!values.compare && isRejected(judgement))) failed++;
    }
  }
  if (table.length === 0) throw new Error(`There is no history in ${positionals.join(', ')}`);
  console.log(table.toString());
  return failed === 0 ? 0 : 1;
}

void runMain(main);
