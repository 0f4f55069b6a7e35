import { expect, it } from '@jest/globals';
import { LockLostError } from '../../../lib';
import { dashboard } from '../../../lib/tools/dashboard';
import { describePrivate } from '../../support/private-redis';
import { until } from '../../support/until';
import { skip, TestedPage, TOKEN, type View } from './tested-page';

describePrivate('The page shows', () => {
  const tested = new TestedPage();

  it('what other processes hold, and what this one knows better', async () => {
    const { lease, lock, registry } = await tested.held('key', { expireAfter: 900 });
    const waiting = [1, 2].map(() => registry.obtain('key').run(() => undefined));
    await until(async () => (await tested.view({ lock })).selected?.renewed === true);
    const { selected, rows, counts, here } = await tested.view({ lock });
    expect(selected).toMatchObject({ lock, holder: 'web-7', isHere: true, renewed: true, waitingHere: 2 });
    expect(selected?.heldFor).toBeGreaterThan(0);
    expect(rows.find((row) => row.lock === lock)).toMatchObject({ holder: 'web-7' });
    expect(counts.held).toBeGreaterThan(0);
    expect(counts.waiting).toBeGreaterThanOrEqual(2);
    expect(here).toContainEqual(expect.objectContaining({ lock, waitsFor: 'this process' }));
    await lease.unlock();
    await Promise.all(waiting);
    expect((await tested.view({ lock: 'no:lock' })).selected).toBeNull();
  });

  it('what changed: acquired, passed on, lost, forced; and which keys are called most', async () => {
    tested.create({ actions: true });
    await tested.view();
    const { lease, lock, owner, registry } = await tested.held('key', { lockType: 'pub-sub' });
    const second = registry.obtain('key').lock();
    await lease.unlock();
    const next = await second;
    // What this process says itself is not said again by what a look at Redis finds.
    skip(1_000);
    await tested.view();
    const { owner: now = owner } = await registry.obtain('key').inspect();
    expect((await tested.unlock(lock, now)).status).toBe(200);
    await expect(next.renew()).rejects.toThrow(LockLostError);
    const { changes, here } = await tested.view();
    const seen = changes.filter((change) => change.lock === lock).map(({ what, by }) => `${what} ${by}`);
    expect([...seen].sort()).toEqual(['acquired web-7', 'forced web-7', 'lost web-7', 'passed on web-7']);
    expect(changes.find(({ what }) => what === 'lost')).toMatchObject({ reason: 'expired' });
    expect(here).toContainEqual(expect.objectContaining({ lock, calls: 2 }));
  });

  it('what other processes changed, as far as Redis shows it', async () => {
    const other = await tested.redis.connect();
    const lock = `${Math.random()}:by-another`;
    const owner = `web-9:${'x'.repeat(22)}:1`;
    // Processes may have one name.
    await tested.held('key', { name: 'web-9' });
    await tested.view();
    await other.set(lock, owner, { PX: 60_000 });
    skip(1_000);
    await until(async () =>
      (await tested.view()).changes.some((change) => change.lock === lock && change.by === 'web-9'),
    );
    await other.del(lock);
    skip(1_000);
    await until(async () =>
      (await tested.view()).changes.some((change) => change.lock === lock && change.what === 'free'),
    );
  });

  it('a lock of Java that was taken while nobody looked as held for at least as long as it was seen', async () => {
    const java = `${Math.random()}:java`;
    const ofJava = async () => (await tested.view()).rows.find(({ lock }) => lock === java);
    await tested.view();
    await tested.client.set(java, '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11', { PX: 600_000 });
    skip(15_000);
    expect((await ofJava())?.holders).toMatchObject([{ heldFor: null, isOlder: true }]);
    const { changes } = await tested.view();
    expect(changes.find(({ lock }) => lock === java)).toMatchObject({ what: 'taken', reason: 'while nobody looked' });
    skip(1_500);
    const later = await ofJava();
    expect([later?.isOlder, later?.heldFor]).toEqual([true, expect.any(Number)]);
    expect(later?.heldFor).toBeLessThan(15_000);
  });

  it('a page of them: searched, sorted, and never more than a hundred', async () => {
    const registryKey = 'many';
    tested.create({ registryKey });
    const all = Array.from({ length: 250 }, (_, i) => {
      const name = `${registryKey}:${String(i).padStart(3, '0')}`;
      return tested.client.set(name, `web-${i % 5}:${'x'.repeat(22)}:${i}`, { PX: 600_000 - i * 1_000 });
    });
    await Promise.all(all);
    const keys = ({ rows }: View) => rows.map(({ lock }) => lock.slice(registryKey.length + 1));
    const first = await tested.view();
    expect([first.matched, first.rows.length, keys(first)[0]]).toEqual([250, 100, '000']);
    expect(keys(await tested.view({ from: '200' }))).toHaveLength(50);
    expect(keys(await tested.view({ from: '1000' }))).toHaveLength(1);
    expect(keys(await tested.view({ sort: 'remaining' }))[0]).toBe('249');
    expect(keys(await tested.view({ sort: 'lock', descending: 'true' }))[0]).toBe('249');
    expect((await tested.view({ q: 'WEB-3' })).matched).toBe(50);
    expect((await tested.view({ q: '07' })).matched).toBe(13);
    expect((await tested.view({ q: 'no such', from: '99', sort: 'nonsense' })).rows).toEqual([]);
  });

  it('what was known, and the problem, while Redis is away; and that it is back, with the first look after that', async () => {
    const { lock } = await tested.held('key');
    await until(async () => (await tested.view()).rows.some((row) => row.lock === lock));
    const problem = async () => (await tested.view()).problem;
    skip(1_000);
    tested.redis.freeze();
    try {
      await tested.view();
      skip(4_000);
      await until(async () => (await problem())?.startsWith('no answer for '), { within: 30_000 });
      await until(async () => (await problem())?.includes('within 5000 ms'), { within: 30_000 });
      expect((await tested.view()).rows.map((row) => row.lock)).toContain(lock);
    } finally {
      tested.redis.thaw();
    }
    // The look that failed took 5 s. The next one is not put off for that.
    skip(1_000);
    await until(async () => (await problem()) === null, { within: 6_000 });
  });

  it('the problem, where the client cannot look at all', async () => {
    tested.page[Symbol.dispose]();
    tested.page = dashboard({ eval: async () => 1, evalSha: async () => 1 }, { token: TOKEN });
    expect((await tested.view()).problem).toMatch(/no way to ask each server/);
  });

  it('the problem, where a look has failed; and the locks, and their server, with the first look after that', async () => {
    let isFailing = false;
    let version = '7.0.1';
    const sendCommand = (command: string[]) => {
      if (isFailing) throw new Error('no such command');
      return command[0] === 'INFO' ? Promise.resolve(`redis_version:${version}`) : tested.client.sendCommand(command);
    };
    const client = Object.create(tested.client, { withCommandOptions: {}, sendCommand: { value: sendCommand } });
    tested.create({ registryKey: 'again' }, client);
    const { lock } = await tested.held('key', { registryKey: 'again' });
    expect(await tested.view()).toMatchObject({ problem: null, rows: [{ lock }], server: 'Redis 7.0.1' });
    isFailing = true;
    skip(1_000);
    expect((await tested.view()).problem).toMatch(/no such command$/);
    skip(1_000);
    expect(await tested.view()).toMatchObject({ problem: 'no such command', rows: [{ lock }] });
    [isFailing, version] = [false, '8.0.2'];
    skip(1_000);
    expect(await tested.view()).toMatchObject({ problem: null, rows: [{ lock }], server: 'Redis 8.0.2' });
  });

  it.each(['answers', 'fails'])('with one look for all that ask in a second, where it %s', async (how) => {
    let looks = 0;
    const sendCommand = async (command: string[]) => {
      if (command[0] === 'TIME') looks++;
      if (command[0] === 'TIME' && how === 'fails') throw new Error('LOADING Redis is loading');
      return tested.client.sendCommand(command);
    };
    tested.create({}, Object.create(tested.client, { withCommandOptions: {}, sendCommand: { value: sendCommand } }));
    await Promise.all(Array.from({ length: 20 }, () => tested.view()));
    await tested.view();
    expect(looks).toBe(1);
    // On a busy machine the first look may have taken longer than half a second: twice that is waited, too.
    skip(10_000);
    await tested.view();
    expect(looks).toBe(2);
  });

  it('a look that took long again only after twice that time', async () => {
    let looks = 0;
    let took = 30_000;
    const sendCommand = async (command: string[]) => {
      if (command[0] === 'TIME') {
        looks++;
        skip(took);
      }
      return tested.client.sendCommand(command);
    };
    tested.create({}, Object.create(tested.client, { withCommandOptions: {}, sendCommand: { value: sendCommand } }));
    await tested.view();
    skip(50_000);
    await tested.view();
    expect(looks).toBe(1);
    took = 0;
    skip(30_000);
    await tested.view();
    expect(looks).toBe(2);
  });

  it.each(['__proto__', 'valueOf', 'constructor', 'nonsense'])(
    'the locks as by default, when asked to sort by %s',
    async (sort) => {
      const names = ['a', 'b'].map((key) => `sorted-${sort}:${key}`);
      for (const name of names) await tested.client.set(name, `web-1:${'x'.repeat(22)}:1`, { PX: 600_000 });
      tested.create({ registryKey: `sorted-${sort}` });
      expect((await tested.view({ sort })).rows.map(({ lock }) => lock)).toEqual(names);
    },
  );

  it('nothing of the value of a key that may be data of an application', async () => {
    const secret = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';
    const lock = `session:${secret.length}`;
    await tested.client.set(lock, secret, { PX: 600_000 });
    const shown = await tested.view({ lock });
    expect(JSON.stringify(shown)).not.toContain(secret.slice(0, 4));
    expect(shown.selected).toMatchObject({ isSure: false, holder: 'not shown', owner: 'not shown' });
    tested.create({ registryKey: 'session' });
    expect((await tested.view({ lock })).selected).toMatchObject({ isSure: true, owner: secret });
  });

  it('which server and database it is, as far as the user may ask', async () => {
    const client = await tested.redis.connect({ database: 3 });
    tested.create({}, client);
    const info = String(await client.sendCommand(['INFO', 'server']));
    // Valkey has both, the other one first.
    const [, version] = /^valkey_version:(.*)$/m.exec(info) ?? /^redis_version:(.*)$/m.exec(info) ?? [];
    const { database, searched, server } = await tested.view();
    expect({ database, server, searched: searched.length }).toEqual({
      database: 3,
      server: expect.stringMatching(/^(Redis|Valkey) \d/),
      searched: 1,
    });
    expect(server.endsWith(`${version}`)).toBe(true);

    const rights = ['on', '>secret', '~*', '&*', '+@all', '-info', '-client'];
    await tested.redis.admin.sendCommand(['ACL', 'SETUSER', 'viewer', ...rights]);
    tested.create({}, await tested.redis.connect({ username: 'viewer', password: 'secret', disableClientInfo: true }));
    expect(await tested.view()).toMatchObject({ problem: null, missing: [], server: '', database: null });
  });

  it('the changes of one lock, when it is open', async () => {
    const first = await tested.held('key');
    const second = await tested.held('key');
    const { changes } = await tested.view({ lock: first.lock });
    expect(changes.map(({ lock, what }) => [lock, what])).toEqual([[first.lock, 'acquired']]);
    expect((await tested.view()).changes.map(({ lock }) => lock)).toContain(second.lock);
  });

  it('that a lock of another registryKey was not looked for, and may be held', async () => {
    tested.create({ registryKey: 'shop' });
    const asked = ['shop:key', 'shopping:key'].map(async (lock) => (await tested.view({ lock })).isLookedFor);
    expect(await Promise.all(asked)).toEqual([true, false]);
  });

  it('that a permit was passed on, where one has left and another one has entered', async () => {
    const lock = `${Math.random()}:jobs`;
    const memberOf = (name: string) => ({
      score: Date.now() + 600_000,
      value: `semaphore:${name}:${'x'.repeat(22)}:1`,
    });
    const names = [['web-1'], ['web-1', 'web-2'], ['web-2', 'web-3'], ['web-3']];
    for (const held of names) {
      // In one step: a look that takes long may be under way.
      await tested.client.multi().del(lock).zAdd(lock, held.map(memberOf)).exec();
      await until(async () => {
        skip(1_000);
        const { selected } = await tested.view({ lock });
        return String(selected?.holders.map(({ holder }) => holder).sort()) === String(held);
      });
    }
    const { changes } = await tested.view({ lock });
    expect(changes.map(({ what, by }) => `${what} ${by}`).sort()).toEqual([
      'entered web-2',
      'left web-2',
      'passed on web-3',
    ]);
  });

  it('since when each holder of a shared lock has it', async () => {
    const lock = `${Math.random()}:jobs`;
    const at = (Date.now() - 90_000) * 1_000;
    const members = [`web-1:${'x'.repeat(22)}:${at}`, `web-2:${'x'.repeat(22)}:1`].map((owner, i) => {
      return { score: Date.now() + 600_000 + i, value: `semaphore:${owner}` };
    });
    await tested.client.zAdd(lock, members);
    const { selected } = await tested.view({ lock });
    const holders = [...(selected?.holders ?? [])].sort((a, b) => (a.holder < b.holder ? -1 : 1));
    expect(holders.map(({ holder, isOlder = false }) => [holder, isOlder])).toEqual([
      ['web-1', false],
      ['web-2', true],
    ]);
    expect(holders[0]?.heldFor).toBeGreaterThanOrEqual(90_000);
  });

  it('a shared lock as held for as long as its oldest holder has it', async () => {
    const lock = `${Math.random()}:jobs`;
    // The lease of the later one lasts longer.
    const members = [3_600_000, 0].map((ago, i) => {
      const owner = `web-1:${'x'.repeat(22)}:${(Date.now() - ago) * 1_000}`;
      return { score: Date.now() + 30_000 * (i + 1), value: `semaphore:${owner}` };
    });
    await tested.client.zAdd(lock, members);
    expect((await tested.view({ lock })).selected?.heldFor).toBeGreaterThanOrEqual(3_600_000);
  });
});
