import { beforeEach, expect, it } from '@jest/globals';
import { ACQUIRE, CLAIM_WINDOW, INSPECTION, OUTSIDER, POLL, RELEASE, WANTED } from '../../../lib/kinds/fair/scripts';
import { processOf } from '../../../lib/kinds/fair/ticket';
import type { Script } from '../../../lib/redis/script';
import { messagesOn } from '../../support/messages';
import { describePrivate } from '../../support/private-redis';
import { MUTE } from '../../support/since';
import { until } from '../../support/until';
import { FairFixture } from './fair-fixture';

/** ms */
const MINUTE = 60_000;
const HOUR = 3_600_000;

describePrivate('The scripts of a fair lock', () => {
  const fair = FairFixture.install();

  const run = async (script: Script, args: string[], { client = fair.admin, fence = [] as string[] } = {}) => {
    const keys = [fair.names.lock, fair.queue, fair.tickets, ...fence];
    return (await client.eval(script.source, { keys, arguments: args })) as unknown[];
  };
  const acquire = (ticket: string, score = '') => run(ACQUIRE, [ticket, '60000', `PUBLISH poll 60000 0 ${score}`]);
  const poll = (ticket: string, how = 'poll', { client = fair.admin, fence = [] as string[] } = {}) =>
    run(POLL, [ticket, `PUBLISH ${how} 60000`], { client, fence });
  const release = (owner: string, text = 'PUBLISH') => run(RELEASE, [owner, 'DEL', text, 'channel']);
  /** For the next caller of the process, which called so many ms ago. */
  const handOver = (owner: string, next: string, ago = 0, ...fence: string[]) => {
    const text = `PUBLISH poll 60000 ${1_000 * ago} 60000 5 ${next}`;
    return run(RELEASE, [owner, 'DEL', text, 'channel'], { fence });
  };
  const hold = (owner: string) => fair.admin.set(fair.names.lock, owner, { PX: MINUTE });
  const micros = (ms = Date.now()) => 1_000 * ms;
  /** Puts a ticket into the queue, whose process is alive for so many ms. */
  const enqueue = async (ticket: string, { score = 1, how = 'poll', ttl = MINUTE, life = MINUTE } = {}) => {
    await fair.admin.zAdd(fair.queue, { score, value: ticket });
    await fair.admin.hSet(fair.tickets, processOf(ticket), `${Date.now() + life}:${ttl}:${how}`);
  };
  const queued = () => fair.admin.zRange(fair.queue, 0, -1);
  const holder = () => fair.admin.get(fair.names.lock);
  const lifeOf = (name: string) => fair.admin.pTTL(name);
  const releasesOf = (name: string) => messagesOn(fair.redis.connect(), `channel:${name}`);
  const grantsOf = (process: string) => `${fair.names.companion('grants')}:${process}`;
  const grantsTo = (process: string) => messagesOn(fair.redis.connect(), grantsOf(process));

  beforeEach(() => fair.admin.flushAll());

  it('The scripts of a fair lock enter a caller behind those that came before the clock of the server was set back', async () => {
    await hold('holder:1');
    await enqueue('early:1', { score: micros(Date.now() + HOUR) });
    await acquire('late:1');
    expect(await queued()).toEqual(['early:1', 'late:1']);
  });

  it('The scripts of a fair lock note how long a process lives, forget the dead only, and shorten the life of no key', async () => {
    await hold('holder:1');
    for (let i = 0; i < 20; i++) await fair.admin.hSet(fair.tickets, `alive ${i}`, `${Date.now() + MINUTE}:1:poll`);
    await fair.admin.hSet(fair.tickets, 'dead', '1:1:poll');
    await enqueue('me:1', { life: HOUR });
    for (const name of [fair.queue, fair.tickets]) await fair.admin.pExpire(name, HOUR);
    await poll('me:1');
    const [lifeEnd] = String(await fair.admin.hGet(fair.tickets, 'me')).split(':');
    expect(Number(lifeEnd)).toBeLessThan(Date.now() + 2 * MINUTE);
    expect(await fair.admin.hLen(fair.tickets)).toBe(21);
    for (const name of [fair.queue, fair.tickets]) expect(await lifeOf(name)).toBeGreaterThan(2 * MINUTE);
  });

  it('The scripts of a fair lock keep the queue for as long as the process of each ticket lives', async () => {
    await hold('holder:1');
    await acquire('me:1');
    await fair.admin.del(fair.queue);
    await run(ACQUIRE, ['other:1', '60000', 'PUBLISH poll 5000 0 ']);
    await acquire('me:2');
    expect(await lifeOf(fair.queue)).toBeGreaterThan(MINUTE - 1_000);
  });

  it('The scripts of a fair lock hand it over to the first that is alive, for no longer than it asked for', async () => {
    await hold('holder:1');
    await enqueue('dead:1', { life: -MINUTE });
    await enqueue('next:1', { score: 2, ttl: CLAIM_WINDOW / 2 });
    await release('holder:1');
    expect(await holder()).toMatch(/^next:1@/);
    expect(await lifeOf(fair.names.lock)).toBeLessThanOrEqual(CLAIM_WINDOW / 2);
    expect(await queued()).toEqual([]);
  });

  it.each([
    [-MINUTE, 0],
    [MINUTE, 2],
  ])(
    'The scripts of a fair lock free it where no waiter can be reached, and forget those that are dead only: %d ms',
    async (life, left) => {
      await hold('holder:1');
      await enqueue('waiter:1', { how: 'message', life });
      expect((await release('holder:1'))[5]).toBe(1);
      expect(await holder()).toBeNull();
      expect(await fair.admin.exists([fair.queue, fair.tickets])).toBe(left);
    },
  );

  it('The scripts of a fair lock hand it over to the next caller of the process, which others have to know, with one token where they wait', async () => {
    await hold('me:1');
    await enqueue('other:1', { score: micros() });
    await handOver('me:1', 'me:2', MINUTE);
    expect(await holder()).toMatch(/^me:2@/);
    expect(await handOver('me:2', 'me:3', MINUTE, fair.names.companion('fence'))).toMatch(/^\d+$/);
    expect(await holder()).toBe('me:3');
  });

  it('The scripts of a fair lock leave it to pollers until a pause ends, and take those that wait for alive meanwhile', async () => {
    const [pause, interval] = [500, 5_000];
    const leave = async (owner: string, lastPause?: number) => {
      await hold(owner);
      if (lastPause !== undefined) await fair.admin.hSet(fair.tickets, 'pause', String(micros(lastPause)));
      return (await release(owner, `PUBLISH message 10000 0 0 0  ${pause} ${interval} 0 0 0`))[8];
    };
    const messages = await releasesOf(fair.names.lock);
    expect(await leave('holder:1')).toBe(0);
    expect(await lifeOf(fair.tickets)).toBeGreaterThan(0);
    for (const asked of [await acquire('waiter:1'), await poll('waiter:1')]) {
      expect(asked[0]).toBeGreaterThan(0);
      expect(asked[0]).toBeLessThanOrEqual(pause);
      expect(await holder()).toBeNull();
    }
    const pauseIn = await leave('holder:2', Date.now());
    expect(pauseIn).toBeGreaterThan(interval - 2 * pause);
    expect(pauseIn).toBeLessThanOrEqual(interval - pause + 1);
    expect(await leave('holder:3', Date.now() - HOUR)).toBe(0);
    expect(await lifeOf(fair.tickets)).toBeGreaterThan(2 * pause);
    await until(() => messages.length === 2);
    // The clock of the server was set back.
    await fair.admin.hSet(fair.tickets, 'pause', String(micros(Date.now() + MINUTE)));
    expect((await acquire('waiter:2'))[2]).toMatch(/^waiter:2@/);
  });

  it('The scripts of a fair lock find by ticket and by owner that it is kept already, and publish it once, to the first that waits too', async () => {
    const messages = await releasesOf(fair.names.lock);
    const told = await grantsTo('waiter');
    await enqueue('waiter:1', { how: 'message' });
    const owner = `holder:1@${micros()}`;
    await hold(owner);
    await release('holder:1', 'PUBLISH none 0 0 0 0  0 0 5000 5000 60000');
    await until(() => messages.length > 0);
    for (const again of ['holder:1', owner]) expect((await release(again)).slice(1)).toEqual(['', '', '']);
    expect(await holder()).toBe(`kept@${owner}`);
    await until(() => told.length > 0);
    expect(told).toEqual([fair.names.lock]);
  });

  it.each(['holder:1', `holder:1@${micros()}`])(
    'The scripts of a fair lock take a ticket out that a late attempt entered while it is kept for %s',
    async (owner) => {
      await hold(owner);
      await release(owner, 'PUBLISH none 0 0 0 0  0 0 5000 5000 60000');
      await acquire('holder:1');
      await acquire('waiter:1');
      await release('holder:1', 'PUBLISH none 0 0 0 0  0 0 5000 5000 60000');
      expect([await queued(), await holder()]).toEqual([['waiter:1'], `kept@${owner}`]);
    },
  );

  it('The scripts of a fair lock keep it for its minHold since the grant that its owner value says', async () => {
    const owner = `holder:1@${micros(Date.now() - MINUTE / 2)}`;
    await hold(owner);
    await release(owner, `PUBLISH none 0 0 0 0  0 0 ${MINUTE} ${MINUTE} ${HOUR}`);
    expect(await lifeOf(fair.names.lock)).toBeGreaterThan(MINUTE / 4);
    expect(await lifeOf(fair.names.lock)).toBeLessThanOrEqual(MINUTE / 2);
  });

  it('The scripts of a fair lock tell its process once that others wait, and give a queue an expiry in any case', async () => {
    const told = await grantsTo('holder');
    await hold('holder:1');
    await fair.admin.hSet(fair.tickets, 'me', `${Date.now() + MINUTE + 500}:60000:poll`);
    await acquire('me:1');
    expect(await lifeOf(fair.queue)).toBeGreaterThan(0);
    await acquire('other:1');
    await fair.admin.publish(grantsOf('holder'), 'the last');
    await until(() => told.includes('the last'));
    expect(told).toEqual([WANTED, 'the last']);
  });

  it('The scripts of a fair lock tell the first that waits that it was unlocked by force', async () => {
    const told = await grantsTo('waiter');
    await hold('holder:1');
    for (const [score, ticket] of ['waiter:1', 'later:1'].entries()) await enqueue(ticket, { score, how: 'message' });
    const notification = ['PUBLISH', fair.names.companion('grants'), 'channel'];
    await run(INSPECTION.forceUnlock, ['holder:1', '', '0', ...notification]);
    await until(() => told.length > 0);
    expect([told, await holder()]).toEqual([[fair.names.lock], null]);
  });

  it.each([
    ['thief:1', -1],
    [undefined, 0],
  ])(
    'The scripts of a fair lock tell a lock that was taken by another from one that expired: %s',
    async (other, found) => {
      if (other !== undefined) await hold(other);
      expect((await release('me:1'))[5]).toBe(found);
    },
  );

  it('The scripts of a fair lock take a holder for one of another lock type unless it is of the own process', async () => {
    await hold('me:1');
    expect([await acquire('other:1'), await acquire('me:2')].map((reply) => reply[2])).toEqual([OUTSIDER, '']);
  });

  it('The scripts of a fair lock keep the position of a caller whose reply was lost, or its grant, which gets a token', async () => {
    await hold('me:1@5');
    for (const ticket of ['a:1', 'b:1', 'a:1']) await acquire(ticket);
    expect(await queued()).toEqual(['a:1', 'b:1']);
    await enqueue('me:1');
    const fence = [fair.names.companion('fence')];
    const [, , owner, token] = await run(ACQUIRE, ['me:1', '60000', 'PUBLISH poll 60000 0 '], { fence });
    expect([owner, token]).toEqual(['me:1@5', expect.stringMatching(/^\d+$/)]);
    await fair.admin.set(fair.names.companion('fence'), '5');
    expect((await poll('me:1', 'poll', { fence })).slice(2, 4)).toEqual(['me:1@5', '5']);
    expect(await queued()).toEqual(['a:1', 'b:1']);
  });

  it('The scripts of a fair lock grant it to nobody while the server refuses to write, nor where no message arrives', async () => {
    const messages = await grantsTo('waiter');
    await hold('holder:1');
    await enqueue('waiter:1', { how: 'message' });
    await fair.admin.configSet('min-replicas-to-write', '1');
    const refused = expect(release('holder:1')).rejects.toThrow('NOREPLICAS');
    await refused.finally(() => fair.admin.configSet('min-replicas-to-write', '0'));
    await fair.admin.publish(grantsOf('waiter'), 'refused');
    await release('holder:1');
    await until(() => messages.length > 1);
    expect(messages).toEqual(['refused', expect.stringMatching('^grant waiter:1@')]);
    await fair.admin.del(fair.names.lock);
    await enqueue('deaf:1', { how: 'message' });
    await poll('other:1');
    expect(await holder()).toBeNull();
  });

  it('The scripts of a fair lock tell a process that it cannot be reached, and take it for one that polls, but not where it may not publish', async () => {
    await fair.admin.sendCommand(['ACL', 'SETUSER', 'mute', 'on', '>x', '~*', '&*', '+@all', ...MUTE]);
    await hold('holder:1');
    await enqueue('me:1', { how: 'message' });
    expect((await poll('me:1', 'message'))[7]).toBe(1);
    expect(await fair.admin.hGet(fair.tickets, 'me')).toMatch(/:poll$/);
    // Somebody listens, and nothing may be published.
    await grantsTo('me');
    await enqueue('me:1', { how: 'message' });
    const mute = await fair.redis.connect({ username: 'mute', password: 'x' });
    expect((await poll('me:1', 'message', { client: mute }))[7]).toBe(0);
  });

  it('The scripts of a fair lock tell a process that finds its grant by a poll that the message about it has not arrived', async () => {
    await grantsTo('me');
    const tells = async (owner: string, age: number, how = 'message', noted = how) => {
      await hold(`${owner}@${micros(Date.now() - age)}`);
      await fair.admin.hSet(fair.tickets, 'me', `${Date.now() + MINUTE}:${MINUTE}:${noted}`);
      const [, , found, , , , , unreachable] = await poll('me:1', how);
      return [found !== '', unreachable];
    };
    expect(await tells('me:1', 500)).toEqual([true, 1]);
    // It may still be on its way; on a busy machine the poll is late.
    await until(async () => (await tells('me:1', 50))[1] === 0);
    // Nothing was published about it.
    expect(await tells('me:1', 500, 'message', 'poll')).toEqual([true, 0]);
    expect(await tells('me:1', 500, 'poll')).toEqual([true, 0]);
    expect(await tells('me:2', 500)).toEqual([true, 0]);
    expect(await tells('other:1', 500)).toEqual([false, 0]);
    // By an attempt of its own.
    await hold('me:1');
    expect((await poll('me:1', 'message'))[7]).toBe(0);
  });

  it('The scripts of a fair lock hand it over, and enter a ticket again, on a server without memory', async () => {
    await hold('me:1');
    await fair.admin.configSet('maxmemory', '1');
    try {
      expect(await handOver('me:1', 'me:2')).toBe(1);
      await acquire('other:1', '7');
      expect(await queued()).toEqual(['other:1']);
      await handOver('me:2', 'me:3');
      expect(await queued()).toEqual(['me:3']);
      await release((await holder()) as string);
      expect(await holder()).toMatch(/^me:3@/);
    } finally {
      await fair.admin.configSet('maxmemory', '0');
    }
  });
});
