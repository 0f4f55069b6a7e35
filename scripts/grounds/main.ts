/**
 * `npm run grounds`: the packed library where users run it. Exit code 0 when all that was run is as it should be; 1 when
 * not; 2 for a wrong option. What cannot be had on this machine is said, and no fault.
 */

import { parseArgs } from 'node:util';
import { isChosen } from '../../support/grounds/cell';
import { runCell } from '../../support/grounds/run-cell';
import { runMain } from '../../support/run-main';
import { CELLS } from './cells';
import { writePages } from './page';
import { keep, kept } from './results';
import { runScale } from './scale/main';

const USAGE = `npm run grounds -- [options] [WORD ...]
  Packs the library, installs pinned versions of what people use it with, and runs programs of a user from the tarball.
  WORD: only the cells that have it in their names: deno, node-24, ioredis-6, server, deno/ioredis-6
  --page    writes the tables of README.md and docs, from this run and the kept results of earlier ones; with --list,
            from those alone
  scale     in place of cells: many processes on a cluster of six masters whose slots move. --minutes 10 --processes 16,64
            --callers 50 --keys 100000
  --list    prints the names of the cells, and runs nothing`;

/** Letters of a fault that are printed. */
const LONGEST = 2_000;

function positive(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new Error(`"${text}" is no number above 0\n\n${USAGE}`);
  return number;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      processes: { type: 'string', default: '16,64' },
      callers: { type: 'string', default: '50' },
      keys: { type: 'string', default: '100000' },
      page: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
    allowPositionals: true,
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (positionals[0] === 'scale') {
    const [minutes, callers, keys] = [values.minutes, values.callers, values.keys].map(positive) as [
      number,
      number,
      number,
    ];
    const processes = values.processes.split(',').map(positive);
    return (await runScale({ minutes, callers, keys, processes, isForPage: values.page })) ? 0 : 1;
  }
  const chosen = CELLS.filter((cell) => isChosen(cell, positionals));
  if (chosen.length === 0) throw new Error(`No cell has "${positionals.join(' ')}" in its name\n\n${USAGE}`);
  if (values.list) {
    for (const { name, title, through } of chosen) console.log(`${name.padEnd(28)} ${title}, ${through}`);
    if (values.page) writePages(CELLS, kept());
    return 0;
  }
  let failed = 0;
  let notHad = 0;
  for (const cell of chosen) {
    const outcome = await runCell(cell);
    keep(outcome);
    const { passed, faults, seconds } = outcome;
    const result =
      outcome.notHad === undefined ? `${passed} passed, ${faults.length} failed` : `cannot be had: ${outcome.notHad}`;
    console.log(`${cell.name.padEnd(28)} ${result}, in ${seconds} s`);
    for (const fault of faults) console.log(`  FAILED ${fault.slice(0, LONGEST)}`);
    if (faults.length > 0) failed++;
    else if (outcome.notHad !== undefined) notHad++;
  }
  console.log(
    `\n${chosen.length} cells: ${chosen.length - failed - notHad} passed, ${failed} failed, ${notHad} cannot be had`,
  );
  if (values.page) writePages(CELLS, kept());
  return failed > 0 ? 1 : 0;
}

void runMain(main).finally(() => {
  // What was cut off may have left anything behind.
  process.exit();
});
