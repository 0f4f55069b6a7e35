import { describe, expect, it } from '@jest/globals';
import { type Segment, SegmentedLock } from '../../lib';
import { seeded } from '../../support/random';
import { until } from '../support/until';
import { ALL, Stock, serve } from './stock';

const stock = Stock.install();

describe('the segment that serves', () => {
  it('is drawn at random', async () => {
    const served = new Map<number, number>();
    for (let i = 0; i < 800; i++) {
      const answer = await stock.lock.run(serve);
      if (answer.served) served.set(answer.segment, (served.get(answer.segment) ?? 0) + 1);
    }
    expect([...served.keys()].sort()).toEqual(ALL);
    for (const times of served.values()) expect(times).toBeGreaterThan(60);
  });

  it('is the same with the same seed', async () => {
    const draw = async (seed: number) => {
      const lock = new SegmentedLock(stock.registry, 'stock', { segments: 8, random: seeded(seed) });
      const drawn = [];
      for (let i = 0; i < 20; i++) drawn.push(await lock.run(serve));
      return drawn;
    };
    expect(await draw(7)).toEqual(await draw(7));
    expect(await draw(7)).not.toEqual(await draw(8));
  });

  it('is passed to the task and to the caller, and released at the end', async () => {
    const answer = await stock.lock.run(async (segment) => {
      expect(segment.name).toBe(`stock:${segment.index}`);
      expect(segment.lease.key).toBe(segment.name);
      expect(stock.registry.held).toEqual([segment.name]);
      return segment.name;
    });
    expect(answer).toEqual({ served: true, value: expect.stringMatching(/^stock:\d$/), segment: expect.any(Number) });
    expect(stock.registry.held).toEqual([]);
  });

  it.each([undefined, null, false, 0, ''])('may serve with %p', async (value) => {
    expect(await stock.lock.run(() => value)).toMatchObject({ served: true, value });
    expect(stock.registry.contended).toHaveLength(1);
  });
});

describe('a segment that is exhausted', () => {
  it('is released, and the next segment is tried, each once', async () => {
    const seen: number[] = [];
    const answer = await stock.lock.run(({ index, name, exhausted }) => {
      expect(stock.registry.held).toEqual([name]);
      seen.push(index);
      return exhausted;
    });
    expect(answer).toEqual({ served: false });
    expect(seen.toSorted()).toEqual(ALL);
    expect(stock.registry.contended).toHaveLength(8);
    expect(stock.registry.held).toEqual([]);
  });

  it('is tried last by the next caller', async () => {
    const only = (wanted: number) => (segment: Segment) => (segment.index === wanted ? 'served' : segment.exhausted);
    for (let seed = 0; seed < 20; seed++) {
      const lock = new SegmentedLock(stock.registry, 'stock', { segments: 8, random: seeded(seed) });
      stock.registry.contended.length = 0;
      await lock.run(only(3));
      const refused = stock.registry.contended.slice(0, -1);
      stock.registry.contended.length = 0;
      // All but the segment that served have been refilled.
      await lock.run(({ index, exhausted }) => (index === 3 ? exhausted : index));
      const untried = stock.registry.contended.slice(0, 8 - refused.length);
      expect(untried.filter((name) => refused.includes(name))).toEqual([]);
      if (refused.length === 7) expect(untried).toEqual(['stock:3']);
    }
  });

  it('is drawn like any other after it has served again', async () => {
    await stock.lock.run(({ exhausted }) => exhausted);
    const served = new Set<number>();
    for (let i = 0; i < 100; i++) {
      const answer = await stock.lock.run(serve);
      if (answer.served) served.add(answer.segment);
    }
    expect([...served].sort()).toEqual(ALL);
  });
});

describe('a busy segment', () => {
  it('is skipped for a free one', async () => {
    const leases = await stock.hold(0, 1, 2, 3, 5, 6, 7);
    for (let i = 0; i < 10; i++) expect(await stock.lock.run(serve)).toMatchObject({ segment: 4 });
    for (const lease of leases) await lease.unlock();
  });

  it('is waited for when the free ones are exhausted', async () => {
    const [lease] = await stock.hold(2);
    const seen: number[] = [];
    const answer = stock.lock.run(({ index, exhausted }) => {
      seen.push(index);
      return index === 2 ? 'served' : exhausted;
    });
    await until(() => stock.registry.waiting('stock:2') === 1);
    expect(seen.toSorted()).toEqual([0, 1, 3, 4, 5, 6, 7]);
    await lease?.unlock();
    expect(await answer).toEqual({ served: true, value: 'served', segment: 2 });
  });

  it('must be visited before an order is refused', async () => {
    const [lease] = await stock.hold(6);
    let settled = false;
    const seen: number[] = [];
    const answer = stock.lock.run(({ index, exhausted }) => {
      seen.push(index);
      return exhausted;
    });
    void answer.then(() => {
      settled = true;
    });
    await until(() => stock.registry.waiting('stock:6') === 1);
    expect(settled).toBe(false);
    await lease?.unlock();
    expect(await answer).toEqual({ served: false });
    expect(seen.toSorted()).toEqual(ALL);
  });

  it('is entered when it is released first, and the waits for the others end', async () => {
    const leases = await stock.hold(...ALL);
    const answer = stock.lock.run(serve);
    const waitedFor = () => ALL.filter((index) => stock.registry.waiting(`stock:${index}`) > 0);
    await until(() => waitedFor().length === 2);
    const second = waitedFor()[1] as number;
    await leases[second]?.unlock();
    expect(await answer).toMatchObject({ served: true, segment: second });
    expect(waitedFor()).toEqual([]);
    for (const lease of leases) await lease.unlock();
    expect(stock.registry.held).toEqual([]);
  });

  it('of a killed process does not block: one more segment is waited for every 100 ms', async () => {
    const leases = await stock.hold(...ALL);
    const answer = stock.lock.run(serve);
    const waitedFor = () => ALL.filter((index) => stock.registry.waiting(`stock:${index}`) > 0);
    await until(() => waitedFor().length === 2);
    const dead = waitedFor();
    await until(() => waitedFor().length === 3);
    const added = waitedFor().find((index) => !dead.includes(index)) as number;
    await leases[added]?.unlock();
    expect(await answer).toMatchObject({ segment: added });
    for (const lease of leases) if (lease.key !== `stock:${added}`) await lease.unlock();
  });

  it('is not entered by a caller that has entered another segment at the same moment', async () => {
    const leases = await stock.hold(...ALL);
    let tasks = 0;
    const answer = stock.lock.run(async ({ index }) => {
      tasks += 1;
      await new Promise(setImmediate);
      return index;
    });
    await until(() => ALL.filter((index) => stock.registry.waiting(`stock:${index}`) > 0).length === 2);
    await Promise.all(leases.map((lease) => lease.unlock()));
    expect(await answer).toMatchObject({ served: true });
    expect(tasks).toBe(1);
    await until(() => stock.registry.held.length === 0);
  });
});
