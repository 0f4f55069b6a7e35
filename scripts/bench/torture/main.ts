/** `npm run torture`: the same faults for several libraries, and one judge. Exit code 2 for a wrong option. */

import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { parseRecords } from '../../../support/judge/records';
import { FaultyProxy } from '../../../support/proxy';
import { withSection } from '../../../support/sections';
import { HEALTHY } from '../../../support/soak/settings';
import { cache, prepareWorker } from '../prepare';
import { terminalTable } from '../report';
import { inflict, type Victim } from './faults';
import { LIBRARIES } from './libraries';
import { TTL, WAIT } from './library';
import { Pair } from './pair';
import { buildPeer } from './peers';
import { type Row, sectionsOf, tableOf } from './report';
import { answerOf, type Silence } from './silence';
import { verdictOf } from './verdict';
import type { FromWorker, ToWorker, WorkerSettings } from './worker';

const DOCS = join(__dirname, '..', '..', '..', 'docs');
const WORKER = join(cache, 'torture.js');
const SILENCE = join(cache, 'silence.js');

const PROCESSES = 5;
const CALLERS = 10;
const KEYS = ['a', 'b', 'c'] as const;

/** ms after the faults in which every call has to settle: several times what a call waits. */
const SETTLING = 5 * WAIT;

const USAGE = `npm run torture -- [options]
  --seconds N      of faults for each library (40)
  --seed N         of the faults (1)
  --only NAME      ${Object.keys(LIBRARIES).join('; ')}; may be repeated (all, one after the other)
  --html FOLDER    where Porcupine draws the first history that it rejects of each
  --silence        no other fault: Redis is frozen under a holder. When does the library of it say that the lease is lost?
  --page           writes what came of it into docs/trust.md`;

/** They end with this process. */
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) signalAll(child, 'SIGKILL');
});

/** A process, and the program of another language that it runs. */
function signalAll({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // It has ended.
  }
}

async function start(settings: WorkerSettings, proxy: FaultyProxy) {
  const options = { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], detached: true } satisfies ForkOptions;
  const child = fork(WORKER, [JSON.stringify(settings)], options);
  children.add(child);
  const heard = (what: FromWorker) =>
    new Promise<void>((resolve) => child.on('message', (message) => message === what && resolve()));
  const settled = heard('settled');
  await Promise.race([heard('ready'), once(child, 'exit').then(() => Promise.reject(new Error('A worker ended')))]);
  const signal = (name: NodeJS.Signals) => signalAll(child, name);
  const send = (message: ToWorker) => child.send(message);
  return { child, settled, ...({ proxy, signal, send } satisfies Victim) };
}

type Named = Pick<WorkerSettings, 'library' | 'program' | 'seed'>;

async function torture({ library, program, seed }: Named, seconds: number, folder: string, html: string): Promise<Row> {
  const pair = await Pair.start();
  const running: Awaited<ReturnType<typeof start>>[] = [];
  const files = Array.from({ length: PROCESSES }, (_, index) => join(folder, `${index}.jsonl`));
  try {
    for (const [index, records] of files.entries()) {
      const proxy = await FaultyProxy.start(pair.server.address);
      proxy.delay = HEALTHY;
      const own = { library, program, address: proxy.address, records, name: `process-${index + 1}` };
      running.push(await start({ ...own, callers: CALLERS, keys: KEYS, seed: seed * 100 + index }, proxy));
    }
    await sleep(1_000);
    const faults = await inflict({ pair, victims: running }, seed, seconds * 1_000);
    for (const { proxy } of running) proxy.delay = HEALTHY;
    for (const { send } of running) send('stop');
    await Promise.race([Promise.all(running.map(({ settled }) => settled)), sleep(SETTLING)]);
    await sleep(TTL + 1_000);
    const left = ((await pair.command('KEYS', '*')) as string[]).length;
    const processes = files.map((file) => parseRecords(readFileSync(file, 'utf8')));
    return { library, faults: faults.length, left, ...verdictOf(processes, faults, html) };
  } finally {
    for (const { child, proxy } of running) {
      signalAll(child, 'SIGKILL');
      children.delete(child);
      proxy.stop();
    }
    await pair.stop();
  }
}

async function silence(library: string): Promise<Silence> {
  const child = fork(SILENCE, [library], { detached: true });
  children.add(child);
  try {
    const ended = once(child, 'exit').then(() => Promise.reject(new Error(`The process of ${library} ended`)));
    const [answer] = (await Promise.race([once(child, 'message'), ended])) as [Silence];
    return answer;
  } finally {
    signalAll(child, 'SIGKILL');
    children.delete(child);
  }
}

/** Of the libraries of other languages none says anything by itself. */
async function silences(names: readonly string[]): Promise<void> {
  prepareWorker(join('torture', 'silence.ts'), SILENCE);
  const rows: string[][] = [];
  for (const name of names.filter((one) => LIBRARIES[one]?.peer === undefined))
    rows.push([name, answerOf(await silence(name))]);
  console.log(terminalTable(['library', `a lease of ${TTL} ms, Redis frozen: the loss is signalled`], rows));
}

async function main(): Promise<number> {
  const [text, flag] = [{ type: 'string' }, { type: 'boolean' }] as const;
  const only = { type: 'string', multiple: true } as const;
  const { values } = parseArgs({
    options: { seconds: text, seed: text, only, html: text, page: flag, silence: flag, help: flag },
  });
  const wanted = Object.entries(LIBRARIES).filter(([name]) => values.only?.includes(name) ?? true);
  if (values.help || wanted.length < (values.only?.length ?? 0)) {
    console.log(USAGE);
    return values.help ? 0 : 2;
  }
  if (values.silence) {
    await silences(wanted.map(([name]) => name));
    return 0;
  }
  prepareWorker(join('torture', 'worker.ts'), WORKER);
  const root = mkdtempSync(join(tmpdir(), 'torture-'));
  const [seconds, seed] = [Number(values.seconds ?? 40), Number(values.seed ?? 1)];
  const rows: Row[] = [];
  const leftOut: string[] = [];
  try {
    for (const [library, { peer }] of wanted) {
      const built = peer === undefined ? { program: [] } : buildPeer(peer);
      if ('missing' in built) {
        console.log(`Left out: ${library}, because ${built.missing}`);
        leftOut.push(library);
        continue;
      }
      const name = library.match(/\w+/g)?.join('-') ?? '';
      const folder = join(root, name);
      mkdirSync(folder);
      if (values.html !== undefined) mkdirSync(values.html, { recursive: true });
      const html = join(values.html ?? root, `${name}.html`);
      rows.push(await torture({ library, program: built.program, seed }, seconds, folder, html));
      console.log(tableOf(rows.slice(-1)));
    }
    console.log(tableOf(rows));
    if (!values.page) return 0;
    const setting = `${PROCESSES} processes with ${CALLERS} callers each, ${seconds} s of faults for each library, seed ${seed}`;
    const { results, settings } = sectionsOf(rows, leftOut, setting);
    for (const [name, section] of [
      ['trust.md', results],
      ['spec/README.md', settings],
    ] as const) {
      const page = join(DOCS, name);
      writeFileSync(page, withSection(readFileSync(page, 'utf8'), section));
    }
    return 0;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
void main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
