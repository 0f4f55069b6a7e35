import { expect, it } from '@jest/globals';
import { LeaseEvalError } from '../../../lib';
import { HoldableClient } from '../../support/holdable-client';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createProxiedRegistry } from '../../support/proxied-registry';
import { itSince } from '../../support/since';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

const INCREMENT = "return redis.call('INCR', KEYS[1]) -- increments";

describePrivate('lease.eval', () => {
  const redis = PrivateRedis.install();

  it.each(['was not answered in time', 'lost its connection before the reply'])(
    'lease.eval says that a script may have run that %s, and does not send it again',
    async (why) => {
      const isLate = why === 'was not answered in time';
      const options = isLate ? { commandTimeout: 300 } : {};
      const { registry, commands, nameOf, client } = await createProxiedRegistry(redis, options);
      const counter = `${nameOf('key')}:counter`;
      const lease = await registry.obtain('key').lock({ ttl: 60_000 });
      await lease.eval(INCREMENT, { keys: [counter] });
      commands.replies.hold = isLate;
      const lost = isLate ? undefined : commands.loseReply(counter);
      const error = await lease.eval(INCREMENT, { keys: [counter] }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LeaseEvalError);
      expect(error).toMatchObject({ code: 'ERR_LEASE_EVAL', key: 'key', cause: expect.anything() });
      expect(String(error)).toContain('it may have run');
      commands.replies.hold = false;
      await lost;
      await until(() => client.isReady);
      expect(await lease.eval(INCREMENT, { keys: [counter] })).toBe(3);
      await lease.unlock();
    },
  );

  it('lease.eval runs where it was called before the unlock', async () => {
    const { registry, nameOf } = createRegistry(await redis.connect());
    const counter = `${nameOf('key')}:counter`;
    const lease = await registry.obtain('key').lock();
    const running = lease.eval(INCREMENT, { keys: [counter] });
    await lease.unlock();
    expect(await running).toBe(1);
  });

  it('lease.eval runs late, if at all, only while the lease is held', async () => {
    const { registry, commands, nameOf, client } = await createProxiedRegistry(redis, { commandTimeout: 300 });
    const counter = `${nameOf('key')}:counter`;
    const lease = await registry.obtain('key').lock({ ttl: 400 });
    commands.requests.hold = true;
    await expect(lease.eval(INCREMENT, { keys: [counter] })).rejects.toBeInstanceOf(LeaseEvalError);
    await until(() => lease.signal.aborted);
    await until(async () => (await redis.admin.exists(nameOf('key'))) === 0);
    commands.requests.hold = false;
    await client.ping();
    expect(await redis.admin.exists(counter)).toBe(0);
    await lease[Symbol.asyncDispose]();
  });

  it('lease.eval runs scripts that overtake each other, each once; one that nobody waits for never after a later one', async () => {
    const client = new HoldableClient(redis.admin);
    const { registry, nameOf } = createRegistry(client, { commandTimeout: 200 });
    const counters = ['early', 'late', 'third'].map((name) => `${nameOf('key')}:${name}`) as [string, string, string];
    const lease = await registry.obtain('key').lock({ ttl: 60_000 });
    const increment = (counter: string) => lease.eval(INCREMENT, { keys: [counter] });
    expect(await increment(counters[0])).toBe(1);
    const catching = client.catchNext('held');
    const overtaken = increment(counters[0]);
    const held = await catching;
    expect(await Promise.all([increment(counters[1]), increment(counters[1])])).toEqual([1, 2]);
    await held.deliver();
    expect(await overtaken).toBe(2);

    const catchingLate = client.catchNext('held');
    const late = increment(counters[2]);
    const heldLate = await catchingLate;
    await expect(late).rejects.toBeInstanceOf(LeaseEvalError);
    expect(await increment(counters[1])).toBe(3);
    await heldLate.deliver();
    expect(await redis.admin.mGet(counters)).toEqual(['2', '3', null]);

    const [mark = ''] = await redis.admin.keys(`{${nameOf('key')}}:evals:*`);
    expect(await redis.admin.get(mark)).toMatch(/^\d+ (\d+ )$/);
    expect(await redis.admin.pTTL(mark)).toBeLessThanOrEqual(4 * 60_000);
    // Numbers of two digits, and a lock whose expiry was taken away.
    for (let count = 4; count < 14; count++) expect(await increment(counters[1])).toBe(count);
    await redis.admin.persist(nameOf('key'));
    expect(await increment(counters[1])).toBe(14);
    await lease.unlock();
  });

  it('lease.eval runs a script once whose own error begins as that of a server that does not know it', async () => {
    const { registry, nameOf } = createRegistry(redis.admin);
    const counter = `${nameOf('key')}:counter`;
    await registry.run('key', async (lease) => {
      for (const error of ['NOSCRIPT there is no such template', 'NOSCRIPT No matching script. Please use EVAL.']) {
        const script = `redis.call('INCR', KEYS[1]) return redis.error_reply('${error}')`;
        await redis.admin.del(counter);
        await expect(lease.eval(script, { keys: [counter] })).rejects.toThrow('NOSCRIPT');
        await expect(lease.eval(script, { keys: [counter] })).rejects.toThrow(/NOSCRIPT|has run/);
        expect(await redis.admin.get(counter)).toBe('2');
      }
    });
  });

  it('lease.eval passes on the errors of the script, with its own line numbers', async () => {
    const lease = await createRegistry(redis.admin).registry.obtain('key').lock();
    const failing = (script: string) => lease.eval(script).catch((error: unknown) => String(error));
    expect(await failing('local a = 1\nlocal b =\nreturn a')).toMatch(/user_script:3: unexpected symbol near 'return'/);
    expect(await failing('return {')).toMatch(/user_script:1: unexpected symbol|'}' expected/);
    expect(await failing("\n\nerror('boom')")).toMatch(/user_script:3: boom/);
    expect(await failing('\nreturn undeclared')).toMatch(/user_script:2: .*undeclared/);
    expect(await failing("return redis.error_reply('sold out')")).toMatch(/sold out/);
    const locals = Array.from({ length: 190 }, (_, i) => `local v${i} = ${i}`).join('\n');
    expect(await lease.eval(`${locals}\nreturn v189 -- the end`)).toBe(189);
    await lease.unlock();
  });

  itSince('7.0')('lease.eval takes a script whose first line has its flags', async () => {
    const lease = await createRegistry(redis.admin).registry.obtain('key').lock();
    const writing = lease.eval("#!lua flags=no-writes\nreturn redis.call('SET', 'a', 'b')");
    await expect(writing).rejects.toThrow(/user_script:2|read-only/);
    expect(await lease.eval('#!lua flags=no-writes\nlocal x = ARGV[1] return x', { arguments: ['x'] })).toBe('x');
    await lease.unlock();
  });
});
