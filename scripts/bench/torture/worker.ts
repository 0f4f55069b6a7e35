// A process of one library: callers take locks, hold them for a while, and write down what the library says of them.

// A step of the wall clock, as this process sees it. Before any library is loaded.
const systemNow = Date.now.bind(Date);
let step = 0;
Date.now = () => Math.round(systemNow() + step);

import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Outcome, Sample, WorkerRecord } from '../../../support/judge/records';
import { Random } from '../../../support/random';
import { sharedNow } from '../../../support/soak/awake-clock';
import type { Address } from '../candidate';
import { type Entry, LIBRARIES } from './libraries';
import type { Held, Library } from './library';

export interface WorkerSettings {
  readonly library: string;
  readonly address: Address;
  /** Of a library in another language: how it is run. */
  readonly program: readonly string[];
  readonly records: string;
  readonly name: string;
  readonly callers: number;
  readonly keys: readonly string[];
  readonly seed: number;
}

export type ToWorker = { readonly step: number } | 'stop';
export type FromWorker = 'ready' | 'settled';

/** ms between two readings, and how long after a pause nothing is read: the timers of the library come first. */
const EVERY = 20;
const PAUSE = 60;
const GRACE = 100;
/** ms that a lease without a known end is relied on after it was read. */
const NOW = 0.01;

const settings = JSON.parse(process.argv[2] ?? '') as WorkerSettings;
const file = openSync(settings.records, 'a');
const held = new Map<string, Held>();
/** Leases whose library has not answered yet. */
const asked = new Set<string>();
let isOver = false;
let calls = 0;

function write(record: WorkerRecord): void {
  writeSync(file, `${JSON.stringify(record)}\n`);
}

async function sampleOf(lease: Held): Promise<Sample> {
  const from = sharedNow();
  const answer = lease.remaining();
  const remaining = answer instanceof Promise ? await answer : answer;
  // It had the lock when it was asked, if it has it when it answers.
  return { from, to: from, remaining: remaining ?? NOW };
}

async function call(library: Library, key: string, hold: number): Promise<void> {
  const id = `${settings.name}-${++calls}`;
  const settled = (outcome: Outcome) => write({ event: 'settled', call: id, outcome, at: sharedNow() });
  write({ event: 'called', call: id, key, others: [], what: 'lock', at: sharedNow() });
  const lease = await library.lock(key).catch(() => 'unavailable' as const);
  if (lease === null || lease === 'unavailable') return settled(lease ?? 'timed out');
  write({ event: 'granted', call: id, token: undefined, sample: await sampleOf(lease) });
  held.set(id, lease);
  await sleep(hold);
  while (!isCalm() || asked.has(id)) await sleep(EVERY);
  held.delete(id);
  write({ event: 'unlocking', call: id, sample: await sampleOf(lease) });
  await lease.release().then(
    () => settled('unlocked'),
    () => settled('release unknown'),
  );
}

let ticked = sharedNow();
let quietUntil = 0;

/** Whether this process has not been paused just now. */
function isCalm(): boolean {
  const now = sharedNow();
  if (now - ticked > PAUSE) quietUntil = now + GRACE;
  ticked = now;
  return now >= quietUntil;
}

async function look(id: string, lease: Held): Promise<void> {
  asked.add(id);
  const sample = await sampleOf(lease);
  asked.delete(id);
  if (held.has(id)) write({ event: 'seen', call: id, sample });
}

function watch(): void {
  if (isCalm()) for (const [id, lease] of held) if (!asked.has(id)) void look(id, lease);
}

async function work(): Promise<void> {
  const entry = LIBRARIES[settings.library] as Entry;
  const library = await entry.open(settings.address, settings.program);
  setInterval(watch, EVERY);
  process.send?.('ready' satisfies FromWorker);
  const random = new Random(settings.seed);
  const loop = async () => {
    while (!isOver) {
      // Some work takes longer than the ttl.
      const hold = random.chance(0.1) ? random.whole(2_500, 4_000) : random.whole(5, 150);
      await call(library, random.pick(settings.keys), hold);
      await sleep(random.whole(0, 50));
    }
  };
  await Promise.all(Array.from({ length: settings.callers }, loop));
  process.send?.('settled' satisfies FromWorker);
}

process.on('message', (message: ToWorker) => {
  if (message === 'stop') isOver = true;
  else step += message.step;
});
process.on('disconnect', () => process.exit());
process.on('unhandledRejection', () => undefined);
process.on('uncaughtException', (error) => console.error(settings.library, error));
void work();
