import { describe, expect, it } from '@jest/globals';
import { type Cell, check, isChosen, NotToBeHad, type Report } from '../../support/grounds/cell';
import { type Outcome, runCell } from '../../support/grounds/run-cell';
import { textsOf } from '../../support/grounds/tables';

function cellThat(run: Cell['run'], other: Partial<Cell> = {}): Cell {
  return { name: 'server/some-9', ground: 'server', title: 'Some 9', through: 'redis 6', limit: 2_000, run, ...other };
}

async function two(report: Report): Promise<undefined> {
  await check(report, 'the first', () => undefined);
  await check(report, 'the second', () => {
    throw new Error('it has another owner');
  });
}

const outcomeOf = (run: Cell['run'], other?: Partial<Cell>) => runCell(cellThat(run, other));
const tableOf = (mark: string, cells: readonly Cell[], outcomes: readonly Outcome[]) =>
  textsOf(cells, new Map(outcomes.map((one) => [one.name, { ...one, date: '2026-01-02' }]))).get(mark);

describe('what a cell of the grounds shows', () => {
  it('counts what was as it should be, and names what was not', async () => {
    expect(await outcomeOf(two)).toMatchObject({ passed: 1, faults: ['the second: it has another owner'] });
  });

  it('has failed if it ends before its checks do', async () => {
    const outcome = await outcomeOf(async (report) => {
      await two(report);
      throw new Error('its server is gone');
    });

    expect(outcome).toMatchObject({ passed: 1, faults: [expect.anything(), 'it cannot go on: its server is gone'] });
  });

  it('has failed if it looked at nothing', async () => {
    expect((await outcomeOf(async () => undefined)).faults).toEqual(['it cannot go on: nothing was looked at']);
  });

  it('has failed if it never ends', async () => {
    const outcome = await outcomeOf(() => new Promise(() => {}), { limit: 20 });

    expect(outcome.faults).toEqual([expect.stringMatching(/^it cannot go on: .*the whole of it/)]);
  });

  it('is no failure where something that it needs is not there, also within a check', async () => {
    const outcome = await outcomeOf(async (report) => {
      await check(report, 'a check', () => {
        throw new NotToBeHad('no package for this processor');
      });
      return undefined;
    });

    expect(outcome).toMatchObject({ faults: [], notHad: 'no package for this processor' });
  });

  it('has the title that its run found', async () => {
    const outcome = await outcomeOf(async (report) => {
      await two(report);
      return 'Some 9.1.2';
    });

    expect(outcome.title).toBe('Some 9.1.2');
  });
});

describe('the tables of the grounds', () => {
  it('have a cell that failed, as that', async () => {
    const cell = cellThat(two);

    const table = tableOf('servers', [cell], [await runCell(cell)]);

    expect(table).toMatch(
      /^\| Some 9 \| redis 6 \| 1 of 2 passed; \*\*failed\*\* with redis 6: the second: it has another owner \|$/m,
    );
    expect(table).toContain('Seen on 2026-01-02');
  });

  it('have a cell that could not be had, with the reason', async () => {
    const cell = cellThat(async () => {
      throw new NotToBeHad('no package for this processor');
    });

    expect(tableOf('servers', [cell], [await runCell(cell)])).toContain(
      '| Some 9 | – | not run: no package for this processor |',
    );
  });

  it('have a cell that was never run', () => {
    expect(tableOf('servers', [cellThat(two)], [])).toContain('| Some 9 | – | not run: so far it was left out |');
  });

  it('count for the first screen what was seen to work, and nothing else', async () => {
    const good = cellThat(
      async (report) => {
        await check(report, 'it', () => undefined);
        return undefined;
      },
      { name: 'node-24/redis-6', ground: 'runtime', title: 'Node 24.1.0' },
    );
    const bad = cellThat(two, { name: 'bun/redis-6', ground: 'runtime', title: 'Bun 1.4.5' });

    const line = tableOf('grounds', [good, bad], [await runCell(good), await runCell(bad)]);

    expect(line).toMatch(/^It runs on Node 24: /);
    expect(line).toContain('1 checks');
  });
});

describe('words that choose cells of the grounds', () => {
  const cell = cellThat(two, { name: 'deno/ioredis-6', ground: 'runtime' });

  it.each(['deno', 'ioredis-6', 'ioredis', 'deno/ioredis-6', 'runtime'])('take it by %s', (word) => {
    expect(isChosen(cell, [word])).toBe(true);
  });

  it.each(['redis-6', 'den', 'server'])('leave it out by %s', (word) => {
    expect(isChosen(cell, [word])).toBe(false);
  });
});
