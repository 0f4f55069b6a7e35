import { expect, it, jest } from '@jest/globals';
import { LockLostError } from '../../../lib';
import { mockRedis } from '../../support/mock-redis';
import { describePrivate } from '../../support/private-redis';
import { callsOf } from '../../support/server-load';
import { until } from '../../support/until';
import { skip, TestedPage } from './tested-page';

describePrivate('The page unlocks by force', () => {
  const tested = new TestedPage();

  it('what is held by whom the page said, and says so with its time', async () => {
    tested.create({ actions: true });
    const { lease, lock, owner } = await tested.held('key');
    const rows = async () => ((await (await tested.ask({ view: 'locks' })).json()) as { rows: unknown[] }).rows;
    expect(await rows()).toContainEqual(expect.objectContaining({ lock }));
    const response = await tested.unlock(lock, owner);
    expect(await response.json()).toEqual({
      message: `${lock} was unlocked by force; web-7 held it, and could not be told`,
    });
    expect(tested.actions).toEqual([
      { at: expect.any(Date), lock, owner, holder: 'web-7', request: expect.any(Request) },
    ]);
    // The page does not show what it saw before.
    expect(await rows()).not.toContainEqual(expect.objectContaining({ lock }));
    await expect(lease.renew()).rejects.toThrow(LockLostError);
  });

  it('and says that the process of the holder was told; ask takes nothing', async () => {
    tested.create({ actions: true });
    const { lease, lock, owner, registry } = await tested.held('told', { inbox: true });
    await until(async () => (await tested.client.pubSubChannels(`*@${registry.id}*`)).length === 1);
    const json = { 'content-type': 'application/json' };
    const asked = await tested.ask({ act: 'ask', lock, owner, why: 'a deploy' }, json, 'POST');
    expect([asked.status, await asked.json()]).toEqual([200, { message: `web-7 holds ${lock}, and was asked for it` }]);
    await until(() => lease.asked.aborted);
    expect(lease.asked.reason).toMatchObject({ why: 'a deploy' });
    lease.assertHeld();
    expect(tested.actions).toEqual([]);
    const response = await tested.unlock(lock, owner);
    expect(await response.json()).toEqual({
      message: `${lock} was unlocked by force; web-7 held it, and was told`,
    });
    await until(() => lease.signal.aborted);
  });

  it('and shows that it is free, though a look that began before is under way', async () => {
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    let isHeldBack = false;
    const sendCommand = async (command: string[]) => {
      const answer = await tested.client.sendCommand(command);
      if (command[0] === 'PTTL' && isHeldBack) {
        isHeldBack = false;
        await held;
      }
      return answer;
    };
    const slow = Object.create(tested.client, { withCommandOptions: {}, sendCommand: { value: sendCommand } });
    tested.create({ actions: true }, slow);
    const { lock, owner } = await tested.held('key');
    isHeldBack = true;
    const before = tested.view();
    await until(() => !isHeldBack);
    expect((await tested.unlock(lock, owner)).status).toBe(200);
    const next = tested.view();
    goOn();
    expect((await next).rows.filter((row) => row.lock === lock)).toEqual([]);
    await before;
  });

  it('and shows that it is free, though somebody has looked while it was being unlocked', async () => {
    let isUnlocking = false;
    const looking = async (command: string[]) => {
      if (isUnlocking && command[0]?.startsWith('EVAL')) {
        isUnlocking = false;
        skip(1_000);
        expect((await tested.view()).rows.map((row) => row.lock)).toContain(lock);
      }
      return tested.client.sendCommand(command);
    };
    tested.create(
      { actions: true },
      Object.create(tested.client, { withCommandOptions: {}, sendCommand: { value: looking } }),
    );
    const { lock, owner } = await tested.held('key');
    await tested.view();
    isUnlocking = true;
    expect((await tested.unlock(lock, owner)).status).toBe(200);
    expect(isUnlocking).toBe(false);
    expect((await tested.view()).rows.map((row) => row.lock)).not.toContain(lock);
  });

  it('and names the holder whose owner value was given, where a semaphore has several', async () => {
    tested.create({ actions: true });
    const lock = `${Math.random()}:jobs`;
    const owners = ['web-1', 'web-2'].map((name) => `${name}:${'x'.repeat(22)}:1`) as [string, string];
    const members = owners.map((owner, i) => ({ score: Date.now() + 600_000 + i, value: `semaphore:${owner}` }));
    await tested.client.zAdd(lock, members);
    expect((await tested.unlock(lock, owners[0])).status).toBe(200);
    expect(tested.actions).toMatchObject([{ lock, owner: owners[0], holder: 'web-1' }]);
  });

  it('without a search for other locks, which may take long on a large server', async () => {
    tested.create({ actions: true });
    const before = await callsOf(tested.client, 'scan');
    expect((await tested.unlock('no:lock', 'owner')).status).toBe(409);
    expect(await callsOf(tested.client, 'scan')).toBe(before);
  });

  it('nothing that somebody else holds by now, or that is free', async () => {
    tested.create({ actions: true });
    const { lease, lock, owner, registry } = await tested.held('key');
    await lease.unlock();
    const free = await tested.unlock(lock, owner);
    expect([free.status, await free.json()]).toEqual([
      409,
      { message: 'Nothing was unlocked: by now nobody holds it' },
    ]);
    const next = await registry.obtain('key').lock();
    expect((await tested.unlock(lock, owner)).status).toBe(409);
    next.assertHeld();
    expect(tested.actions).toEqual([]);
  });

  /** A page whose commands come after what `before` does. */
  const createLate = (before: (command: string[]) => Promise<void>) => {
    const sendCommand = async (command: string[]) => {
      await before(command);
      return tested.client.sendCommand(command);
    };
    const late = Object.create(tested.client, { withCommandOptions: {}, sendCommand: { value: sendCommand } });
    tested.create({ actions: true }, late);
  };

  it('nothing that has become free since it was looked at, and says so', async () => {
    const { lease, lock, owner } = await tested.held('key');
    let isFree = false;
    createLate(async ([name]) => {
      if (name !== 'EVALSHA') return;
      isFree = true;
      await lease.unlock();
    });
    const response = await tested.unlock(lock, owner);
    expect([response.status, await response.json()]).toEqual([
      409,
      { message: 'Nothing was unlocked: by now nobody holds it' },
    ]);
    expect([isFree, tested.actions]).toEqual([true, []]);
  });

  it('nothing that is held by another one since it was looked at, and says so', async () => {
    const { lock, owner } = await tested.held('key');
    createLate(async (command) => {
      // The script that unlocks leaves a mark.
      if (command.some((word) => word.includes(':forced:'))) await tested.client.set(lock, 'another', { PX: 60_000 });
    });
    const response = await tested.unlock(lock, owner);
    expect([response.status, await response.json()]).toEqual([
      409,
      { message: 'Nothing was unlocked: by now another one holds it' },
    ]);
    expect([await tested.client.get(lock), tested.actions]).toEqual(['another', []]);
  });

  it('nothing that cannot be read, and says so', async () => {
    const sendCommand = () => Promise.reject(new Error('no answer'));
    tested.create({ actions: true }, { ...mockRedis(), sendCommand } as never);
    const answer = await tested.unlock('orders:key', 'owner');
    expect([answer.status, await answer.json()]).toEqual([503, { message: expect.stringMatching(/no answer$/) }]);
  });

  it('nothing without the option `actions`, and nothing of another registry', async () => {
    const { lease, lock, owner } = await tested.held('key');
    expect((await tested.unlock(lock, owner)).status).toBe(403);
    tested.create({ actions: true, registryKey: 'another' });
    expect((await tested.unlock(lock, owner)).status).toBe(409);
    lease.assertHeld();
    expect((await tested.view()).actions).toBe(true);
  });

  it('and logs a line with its time, by default', async () => {
    tested.create({ actions: true, onAction: undefined });
    const written = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    const { lock, owner } = await tested.held('line\nbreak');
    await tested.unlock(lock, owner);
    const lines = written.mock.calls.map(([text]) => String(text));
    written.mockRestore();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /^\d{4}-\S+Z redis-lock-registry: lock ".*line\\nbreak" was unlocked by force; "web-7" held it\n$/,
    );
  });

  it('no key that may be data of an application, unless it is one of the registry that the page is of', async () => {
    tested.create({ actions: true });
    const secret = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';
    await tested.client.set('basket:7', secret, { PX: 600_000 });
    for (const owner of [secret, 'not shown']) {
      const refused = await tested.unlock('basket:7', owner);
      expect(refused.status).toBe(409);
      expect(await refused.json()).toEqual({
        message: expect.stringMatching(/may be data of an application.* redis-locks release basket:7 --may-be-data$/),
      });
    }
    expect([await tested.client.exists('basket:7'), tested.actions]).toEqual([1, []]);
    tested.create({ actions: true, registryKey: 'basket' });
    expect((await tested.unlock('basket:7', secret)).status).toBe(200);
    expect(await tested.client.exists('basket:7')).toBe(0);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('audit log is down');
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('audit log is down');
      },
    ],
  ])('and says so, though `onAction` %s', async (_how, onAction) => {
    tested.create({ actions: true, onAction });
    const { lock, owner } = await tested.held('key');
    const written = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    const response = await tested.unlock(lock, owner);
    const { changes } = await tested.view();
    const lines = written.mock.calls.map(([text]) => String(text));
    written.mockRestore();
    expect(response.status).toBe(200);
    expect(changes.filter((change) => change.lock === lock).map(({ what }) => what)).toContain('forced');
    expect(lines).toEqual([expect.stringContaining('`onAction` failed: "audit log is down"')]);
  });

  it('nothing without the right to it, and says that nothing was done', async () => {
    const { lease, lock, owner } = await tested.held('key', { lockType: 'spin' });
    await tested.redis.admin.sendCommand([
      'ACL',
      'SETUSER',
      'reader',
      'on',
      '>secret',
      '~*',
      '&*',
      '+@all',
      '-@scripting',
    ]);
    const client = await tested.redis.connect({ username: 'reader', password: 'secret' });
    tested.create({ actions: true }, client);
    const response = await tested.unlock(lock, owner);
    expect([response.status, await response.json()]).toEqual([
      502,
      { message: expect.stringMatching(/^Lock ".*" was not unlocked by force: .*NOPERM/) },
    ]);
    await lease.renew();
    expect(tested.actions).toEqual([]);
  });
});
