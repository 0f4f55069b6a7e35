import { expect, it } from '@jest/globals';
import { WantedMark } from '../../lib/kinds/common/wanted';
import type { Redis } from '../../lib/redis/redis';
import { FakeClock } from '../support/fake-clock';
import { FakeRedis } from '../support/fake-redis';

const time = FakeClock.install();

function start() {
  const redis = new FakeRedis();
  return { redis, mark: new WantedMark(redis as unknown as Redis, '{r:k}:wanted', 'us', 1_000) };
}

const written = (headStart: number) => `mark as wanted | us | ${headStart} | ${headStart > 0 ? 1_000 : 4_000}`;

it('A caller that waits for 100 ms leaves a mark, and again every two seconds; one that waits for less leaves none', async () => {
  const { redis, mark } = start();
  mark.begin(0);
  await time.advance(99);
  mark.end();
  expect([redis.news, time.pending]).toEqual([[], 0]);
  await time.advance(200);
  mark.begin(0);
  await time.advance(100);
  expect([redis.last.keys, redis.last.timeout]).toEqual([['{r:k}:wanted'], 1_000]);
  redis.last.fail(new Error('silent'));
  expect(redis.news).toEqual([written(0)]);
  await time.advance(1_999);
  expect(redis.news).toEqual([]);
  await time.advance(1);
  expect([redis.news, time.keepingAlive]).toEqual([[written(0)], 0]);
  mark.end();
  expect(time.pending).toBe(0);
});

it('Sleeps that follow each other count as one wait, until the process has the lock', async () => {
  const { redis, mark } = start();
  const sleep = async () => {
    mark.begin(0);
    await time.advance(60);
    mark.end();
  };
  await sleep();
  await sleep();
  expect(redis.news).toEqual([written(0)]);
  const other = start();
  for (let turn = 0; turn < 3; turn++) {
    other.mark.begin(0);
    await time.advance(60);
    other.mark.end();
    other.mark.acquired();
  }
  expect(other.redis.news).toEqual([]);
});

it('A process that no message reaches any more says so in a mark at once, and one that messages reach again in its next one', async () => {
  const { redis, mark } = start();
  const sleep = async (headStart: number, ms: number) => {
    mark.begin(headStart);
    await time.advance(ms);
    mark.end();
    return redis.news;
  };
  expect(await sleep(0, 150)).toEqual([written(0)]);
  expect(await sleep(99.5, 10)).toEqual([written(100)]);
  expect(await sleep(99.5, 499)).toEqual([written(100)]);
  expect(await sleep(0, 1_900)).toEqual([]);
  expect(await sleep(0, 200)).toEqual([written(0)]);
});

it('A process whose attempts follow each other without a sleep leaves a mark, too', async () => {
  const { redis, mark } = start();
  for (let attempt = 0; attempt < 4; attempt++) {
    mark.begin(90);
    mark.end();
    await time.advance(60);
  }
  expect([mark.headStart, redis.news]).toEqual([90, ['mark as wanted | us | 90 | 1000']]);
  await time.advance(1_000);
  expect(mark.headStart).toBe(0);
});

it('A closed registry leaves no mark', async () => {
  const { redis, mark } = start();
  redis.isClosed = true;
  mark.begin(0);
  await time.advance(100);
  expect(redis.news).toEqual([]);
  mark.end();
});
