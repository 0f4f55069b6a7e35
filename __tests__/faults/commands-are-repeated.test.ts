import { expect, it } from '@jest/globals';
import { type DistributedLock, type EvalOptions, type Lease, LeaseEvalError, type RedisLockRegistry } from '../../lib';
import { ownerOf } from '../kinds/shared/shared-fixture';
import { LOCK_TYPES, TRAVELLING_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** Has every command executed twice, as a client does whose reply was lost. Passes on the second reply. */
function repeating(client: TestClient) {
  const twice = async (send: () => Promise<unknown>, options?: EvalOptions): Promise<unknown> => {
    await send();
    await repeated.between(options);
    const reply = await send();
    await repeated.after(options);
    return reply;
  };
  const repeated = {
    /** Runs between the two executions. */
    between: async (_options?: EvalOptions) => {},
    after: async (_options?: EvalOptions) => {},
    eval: (script: string, options?: EvalOptions) => twice(() => client.eval(script, options), options),
    evalSha: (sha1: string, options?: EvalOptions) => twice(() => client.evalSha(sha1, options), options),
    /** For `list`. */
    scan: (cursor: string, options: { MATCH: string; COUNT: number }) => twice(() => client.scan(cursor, options)),
  };
  return repeated;
}

const INCREMENT = "return redis.call('INCR', KEYS[1])";

type LockOf = (registry: RedisLockRegistry) => DistributedLock;

const LOCKS: [name: string, options: object, lockOf: LockOf][] = [
  ...LOCK_TYPES.map((lockType): [string, object, LockOf] => [lockType, { lockType }, (locks) => locks.obtain('key')]),
  ['semaphore', {}, (registry) => registry.semaphore('key', { permits: 2 })],
  ['read lock', {}, (registry) => registry.readWrite('key').read],
  ['write lock', {}, (registry) => registry.readWrite('key').write],
];

// The rows of the table "Commands that a client repeats" in docs/redis.md.
describePrivate.each(LOCKS)('a client repeats every command: %s', (_name, options, lockOf) => {
  const redis = PrivateRedis.install();

  /** The lock in a process whose client repeats, and in two others. */
  const open = () => {
    const client = repeating(redis.admin);
    const { registry, registryKey, nameOf } = createRegistry(client, { ...options, fencing: true });
    const shared = { ...options, fencing: true, registryKey };
    const ofAnother = () => lockOf(createRegistry(redis.admin, shared).registry);
    return { registry, client, nameOf, lock: lockOf(registry), second: ofAnother(), third: ofAnother() };
  };

  it('P11: acquire, inspect, list and renew give what one execution gives', async () => {
    const { registry, lock, second } = open();
    const lease = await lock.lock();
    const { held, owner, fencingToken, remaining } = await second.inspect();
    expect([held, owner, fencingToken]).toEqual([true, ownerOf(lease), lease.fencingToken]);
    expect(await lock.inspect()).toMatchObject({ held: true, owner });
    const listed: unknown[] = [];
    for await (const one of registry.list()) listed.push(one);
    expect(listed).toMatchObject([{ key: 'key', held: true, owner }]);
    await lease.renew(2 * remaining);
    expect((await second.inspect()).remaining).toBeGreaterThan(remaining);
    await lease[Symbol.asyncDispose]();
    expect((await second.inspect()).held).toBe(false);
  });

  it.each([5_000, 300_000])(
    'When a client repeats every command, an attempt gives the same token, and the whole ttl or what is left: %d ms',
    async (life) => {
      const { client, lock, nameOf, second } = open();
      const { admin } = redis;
      let token: number | undefined;
      client.between = async () => {
        ({ fencingToken: token } = await second.inspect());
        const name = nameOf('key');
        const members = (await admin.type(name)) === 'zset' ? await admin.zRangeByScore(name, 1, '+inf') : [];
        for (const value of members) await admin.zAdd(name, { score: Date.now() + life, value });
        await admin.pExpire(name, life);
      };
      const lease = await lock.lock({ ttl: 60_000 });
      client.between = async () => {};
      expect(lease.fencingToken).toBe(token);
      expect((await second.inspect()).remaining).toBeGreaterThan(Math.max(life, 60_000) - 5_000);
      await lease.unlock().catch(() => undefined); // found gone, when it was repeated
    },
  );

  it('When a client repeats every command, a release leaves the next holder its lease', async () => {
    const { client, lock, second } = open();
    const lease = await lock.lock();
    let next: Lease | undefined;
    client.between = async () => {
      next ??= await second.lock({ waitTime: 5_000 });
    };
    await lease[Symbol.asyncDispose]();
    await next?.renew();
    await next?.unlock();
    expect(next).toBeDefined();
  });

  it('When a client repeats every command, a hand-over, and a lock that is kept, go to the next caller once', async () => {
    const { lock, second } = open();
    const lease = await lock.lock({ minHold: 50 });
    const waiting = [lock.lock({ waitTime: 5_000 }), lock.lock({ waitTime: 5_000 })];
    await lease.unlock().catch(() => undefined); // found it kept: a loss, over a connection that was not broken
    for (const next of waiting) {
      await (await next).renew();
      await (await next)[Symbol.asyncDispose]();
    }
    await until(async () => !(await second.inspect()).held); // a kept permit of a semaphore ends by itself
  });

  it('When a client repeats every command, a forced unlock leaves the next holder its lease', async () => {
    const { client, lock, second, third } = open();
    const lease = await second.lock();
    let next: Lease | undefined;
    client.between = async () => {
      if (!(await third.inspect()).held) next ??= await third.lock({ waitTime: 5_000 });
    };
    expect(await lock.forceUnlock()).toMatchObject({ held: true, owner: ownerOf(lease) });
    await next?.renew();
    await next?.unlock();
    expect(next).toBeDefined();
    await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError' });
  });

  it('When a client repeats every command, eval runs once, also when the repetition comes after twice the ttl of a lease that is renewed meanwhile', async () => {
    const { client, lock, nameOf } = open();
    const lease = await lock.lock({ ttl: 60_000 });
    const counter = `${lease.key}:${ownerOf(lease)}`;
    client.between = async () => {
      client.between = async () => {};
      await lease.eval('return 1').catch(() => undefined); // a later script, which runs before the repetition
      // As after that time: the mark that it has run ends so much sooner, and the lease has its whole ttl.
      const [mark = ''] = await redis.admin.keys(`{${nameOf('key')}}:evals:*`);
      await redis.admin.pExpire(mark, (await redis.admin.pTTL(mark)) - 2 * 60_000);
    };
    const error = await lease.eval(INCREMENT, { keys: [counter] }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LeaseEvalError);
    expect(error).toMatchObject({ message: expect.stringMatching(/has run/) });
    expect(await redis.admin.get(counter)).toBe('1');
    await lease[Symbol.asyncDispose]();
  });
});

describePrivate('A client repeats the command that takes a lock from its holder', () => {
  const redis = PrivateRedis.install();

  it.each(TRAVELLING_TYPES)('when a later owner has come to a %s lock: nothing is changed (P14)', async (lockType) => {
    const client = repeating(redis.admin);
    const subscriber = await redis.connect();
    const ours = createRegistry(client, { lockType, subscriber, fencing: true, name: 'ours' });
    const { registryKey } = ours;
    const other = async (name: string) => {
      const options = { lockType, registryKey, inbox: true, fencing: true, name };
      return createRegistry(await redis.connect(), options).registry;
    };
    const holder = await other('holder');
    const later = (await other('later')).obtain('key');
    const lease = await holder.obtain('key').lock();
    const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    await until(async () => (await redis.admin.pubSubChannels(`*@${holder.id}*`)).length === 1);
    const isTaking = (options?: EvalOptions) => options?.arguments?.some((text) => text.startsWith('taken ')) ?? false;
    const state = async () => {
      const { owner, fencingToken, remaining = 0 } = await later.inspect();
      return { owner, fencingToken, remaining };
    };
    const stop = new AbortController();
    let next: Promise<Lease> | undefined;
    let before: Awaited<ReturnType<typeof state>> | undefined;
    let after: typeof before;
    client.between = async (options) => {
      if (!isTaking(options) || next !== undefined) return;
      expect((await later.inspect()).name).toBe('ours');
      next = later.lock({ replace: true, grace: 30_000 });
      await until(async () => (await later.inspect()).name === 'later');
      before = await state();
    };
    client.after = async (options) => {
      if (!isTaking(options) || after !== undefined) return;
      after = await state();
      stop.abort(new Error('enough'));
    };
    const replacing = ours.registry.obtain('key').lock({ replace: true, grace: 30_000, signal: stop.signal });
    await expect(replacing).rejects.toThrow('enough');
    expect([after?.owner, after?.fencingToken]).toEqual([before?.owner, before?.fencingToken]);
    expect(after?.remaining).toBeLessThanOrEqual(before?.remaining as number);
    await lost;
    await expect(lease.unlock()).rejects.toMatchObject({ reason: 'stolen' });
    await (await next)?.unlock();
  });
});
