import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { candidateNamed } from './libraries';
import { built, cache } from './prepare';
import { BenchProcess } from './processes';
import { terminalTable } from './report';
import { participantsOf, RunningCandidate } from './runner';
import type { Scenario } from './scenarios';
import type { BenchServer } from './server';

const OURS = ['spin', 'pub-sub', 'fair'];

/** Functions of ours that an uncontended call may visit. */
const GOALS = { lock: 60, unlock: 30 };

/** ms for which each candidate is profiled. */
const WINDOW = 3_000;

interface Options {
  readonly quick: boolean;
  readonly only: readonly string[];
  readonly scenario: readonly string[];
  readonly selected: readonly Scenario[];
}

/**
 * In place of the scenarios: how many functions a call visits. With --scenario also a profile of each process, as a file. A
 * table of shares is not made of it: V8 counts most of what a lone caller does as idle, and has a few dozen samples of it.
 */
export async function profile(options: Options, server: BenchServer, print: (text: string) => void): Promise<void> {
  const counts: string[][] = [];
  for (const id of OURS) {
    const address = { address: server.address, ttl: 30_000, library: built.library };
    const one = await BenchProcess.start(candidateNamed(id), address);
    const { lock = Number.NaN, unlock = Number.NaN } = (await one.request({ count: true })).counts ?? {};
    await one.end();
    counts.push([id, String(lock), String(unlock)]);
  }
  print(`\nFunctions of the library that an uncontended call visits (goals: ${GOALS.lock} and ${GOALS.unlock})`);
  print(terminalTable(['', 'lock()', 'unlock()'], counts));
  for (const scenario of options.scenario.length > 0 ? options.selected : []) {
    for (const candidate of participantsOf(scenario, options.only, options.quick)) {
      const timing = { ...(options.quick ? scenario.quick : scenario.full), window: WINDOW };
      await server.clear();
      const running = await RunningCandidate.open(candidate, scenario, timing, server);
      try {
        await running.begin();
        for (const [i, text] of (await running.profile()).entries()) {
          const file = join(cache, `${scenario.id}-${candidate.id}-${i + 1}.cpuprofile`);
          writeFileSync(file, text);
          print(`written: ${relative(process.cwd(), file)}`);
        }
      } finally {
        await running.end();
      }
    }
  }
}
