import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LockRegistry, RedisLockRegistry } from '../../../lib';
import { LockModule } from '../../../lib/integrations/nestjs';
import { hashSlot } from '../../../lib/redis/cluster';
import { LockNames } from '../../../lib/redis/names';
import { InMemoryLockRegistry } from '../../../lib/testing';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

/* Names without a colon, as other programs have them: registryKey ''. */

const TYPES = ['spin', 'pub-sub'] as const;
const HEX = '0f'.repeat(16);

describePrivate('Without a registryKey', () => {
  const redis = PrivateRedis.install();

  it.each(TYPES)(
    'A %s lock without a registryKey has the name that is its key, and excludes other programs',
    async (lockType) => {
      const { registry } = createRegistry(await redis.connect(), { registryKey: '', lockType });
      const lease = await registry.obtain('report').lock({ ttl: 60_000 });
      expect((await redis.admin.keys('*')).filter((name) => !name.includes(':evals:forced:'))).toEqual(['report']);
      const theirs = (): Promise<unknown> => redis.admin.set('report', HEX, { NX: true, PX: 60_000 });
      expect(await theirs()).toBeNull();
      await lease.unlock();
      expect(await theirs()).toBe('OK');
      expect(await registry.obtain('report').tryLock()).toBeNull();
      expect(await registry.obtain('report').inspect()).toMatchObject({ held: true, owner: HEX, isOurs: false });
      expect(await registry.obtain('report').forceUnlock()).toMatchObject({ held: true });
      expect(await registry.tryRun('report', () => 1)).toEqual({ ran: true, value: 1 });
    },
  );

  it.each(TYPES)(
    'Two processes share %s locks without a registryKey, and every kind of call works',
    async (lockType) => {
      const options = { registryKey: '', lockType, fencing: true } as const;
      const one = createRegistry(await redis.connect(), options);
      const other = createRegistry(await redis.connect(), options);
      const lease = await one.registry.obtain('report').lock();
      const waiting = other.registry.obtain('report').lock({ waitTime: 20_000 });
      if (lockType === 'pub-sub') {
        await until(async () => (await redis.admin.pubSubNumSub('-channel:report'))['-channel:report'] === 1);
        expect((await one.registry.obtain('report').inspect()).waiting).toBe(1);
      }
      const detached = await lease.detach();
      const adopted = await other.registry.adopt(detached);
      await adopted.unlock();
      const next = await waiting;
      expect(next.fencingToken).toBeGreaterThan(adopted.fencingToken ?? Number.NaN);
      expect(await next.eval('return redis.call("GET", KEYS[1])', { keys: ['{report}:fence'] })).toBe(
        String(next.fencingToken),
      );
      await next.unlock();
      expect(await one.registry.once('report', () => 7, { keepFor: 60_000 })).toBe(7);
      expect(await redis.admin.get('{report}:once')).toBe('7');
      expect(await other.registry.forget('report')).toBe(true);
      await one.registry.multi(['report', 'invoice']).run(() => undefined);
      await one.registry.semaphore('seats', { permits: 1 }).run(() => undefined);
      expect([one.warnings, other.warnings]).toEqual([[], []]);
    },
  );

  it('A waiter without a registryKey is woken by a message that another program publishes', async () => {
    const { registry } = createRegistry(await redis.connect(), {
      registryKey: '',
      lockType: 'pub-sub',
      idleBetweenTries: 60_000,
    });
    await redis.admin.set('report', HEX);
    const waiting = registry.obtain('report').lock({ waitTime: 30_000 });
    await until(async () => (await redis.admin.pubSubNumSub('-channel:report'))['-channel:report'] === 1);
    await redis.admin.del('report');
    await redis.admin.publish('-channel:report', 'report');
    await (await waiting).unlock();
  });

  it('A lock without a registryKey is that of a registry whose registryKey and key make the same name', async () => {
    const all = createRegistry(await redis.connect(), { registryKey: '', lockType: 'pub-sub' }).registry;
    const orders = createRegistry(await redis.connect(), { registryKey: 'orders', lockType: 'pub-sub' }).registry;
    const lease = await all.obtain('orders:a').lock();
    expect(await orders.obtain('a').tryLock()).toBeNull();
    // They have two channels: this one polls.
    const waiting = orders.obtain('a').lock({ waitTime: 20_000 });
    await lease.unlock();
    await (await waiting).unlock();
  });

  it('A list without a registryKey says so where the user has no right to a key of the application', async () => {
    const rights = ['reset', 'on', '>x', '~order:*', '~{order:*', '&*', '+@all'];
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'some', ...rights]);
    const client = await redis.connect();
    await client.sendCommand(['AUTH', 'some', 'x']);
    const { registry } = createRegistry(client, { registryKey: '', lockType: 'pub-sub' });
    const lease = await registry.obtain('order:1').lock();
    await redis.admin.set('data', 'text');
    try {
      await expect(registry.list().next()).rejects.toThrow(
        /^Locks could not be listed: "data" could not be read: NOPERM .* Use a match of the locks alone$/,
      );
      const keys: string[] = [];
      for await (const { key } of registry.list({ match: 'order:*' })) keys.push(key);
      expect(keys).toEqual(['order:1']);
    } finally {
      await lease.unlock();
    }
  });

  it.each(TYPES)(
    'A list of %s locks without a registryKey has locks of this library only, whatever values other keys have',
    async (lockType) => {
      const { registry } = createRegistry(await redis.connect(), { registryKey: '', lockType });
      const values = [randomUUID(), `${randomUUID()}:5`, HEX, 'text', ''];
      for (const [i, value] of values.entries()) await redis.admin.set(`data:${i}`, value, { PX: 60_000 });
      await redis.admin.hSet('hash', `${randomUUID()}:1`, '1');
      await redis.admin.sendCommand(['SET', Buffer.from([0xff]), Buffer.from([0xff])]);
      const leases = [await registry.obtain('report').lock(), await registry.obtain('a:b').lock()];
      const listed = [];
      for await (const { key } of registry.list()) listed.push(key);
      expect(listed.sort()).toEqual(['a:b', 'report']);
      const matching = [];
      for await (const { key } of registry.list({ match: 're*' })) matching.push(key);
      expect(matching).toEqual(['report']);
      for (const lease of leases) await lease.unlock();
    },
  );

  it.each([
    [
      'spin',
      '~report ~{report}:evals:* &-channel:report &-channel:@* +eval +evalsha +get +set +pttl +pexpire +unlink +publish',
    ],
    [
      'pub-sub',
      '~report ~{report}:evals:* ~{report}:wanted &-channel:report* &-channel:@* +eval +evalsha +get +set +pttl +pexpire +unlink +pubsub|numsub +publish +subscribe +unsubscribe',
    ],
  ] as const)('The documented rights for one %s lock without a registryKey suffice', async (lockType, rules) => {
    const all = ['on', '>secret', 'resetkeys', 'resetchannels', '-@all', '+hello', ...rules.split(' ')];
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'few', ...all]);
    await redis.admin.sendCommand(['ACL', 'LOG', 'RESET']);
    const made = async () =>
      createRegistry(await redis.connect({ username: 'few', password: 'secret' }), { registryKey: '', lockType });
    const [one, other] = [await made(), await made()];
    const lease = await one.registry.obtain('report').lock();
    const waiting = other.registry.obtain('report').lock({ waitTime: 20_000 });
    if (lockType === 'pub-sub') await until(async () => (await redis.admin.exists('{report}:wanted')) === 1);
    await lease.unlock();
    await waiting;
    await one.registry.obtain('report').forceUnlock();
    const denied = (await redis.admin.aclLog()).filter(({ object }) => !object.startsWith('client'));
    expect([denied, one.warnings, other.warnings]).toEqual([[], [], []]);
  });

  it('A NestJS module has locks without a registryKey', async () => {
    const client = await redis.connect();
    const imports = [LockModule.forRoot({ client, registryKey: '', lockType: 'pub-sub' })];
    const module = await Test.createTestingModule({ imports }).compile();
    const lease = await module.get(LockRegistry).obtain('report').lock();
    expect(await redis.admin.exists('report')).toBe(1);
    await lease.unlock();
    await module.close();
  });

  it('A fair lock needs a registryKey, and the error quotes the empty one', async () => {
    const client = await redis.connect();
    const make = () => new RedisLockRegistry(client, { registryKey: '', lockType: 'fair' });
    expect(make).toThrow(
      new TypeError('Expected `registryKey` to be a non-empty string with lockType "fair", got \'\' (string)'),
    );
    expect(() => new InMemoryLockRegistry({ registryKey: '' })).toThrow(TypeError);
  });

  it.each(TYPES)(
    'An empty key, and names of keys beside %s locks, stay refused without a registryKey',
    async (lockType) => {
      const { registry } = createRegistry(await redis.connect(), { registryKey: '', lockType });
      expect(() => registry.obtain('')).toThrow(TypeError);
      for (const name of [
        '{report}:wanted',
        '{report}:once',
        '{report}:evals:x',
        '{report}:fence',
        '{a}:wanted:{a}b',
      ]) {
        expect(() => registry.obtain(name)).toThrow(
          `Expected "${name}" not to be the name of a key that belongs to another lock`,
        );
      }
    },
  );
});

it.each(['report', 'a b', '{tag}report', '-channel', 'größe'])(
  'The keys beside a lock without a registryKey are in its slot: %s',
  (key) => {
    const names = new LockNames('', key);
    expect(names.lock).toBe(key);
    expect(names.channel).toBe(`-channel:${key}`);
    for (const suffix of ['fence', 'wanted', 'evals', 'once'] as const)
      expect(hashSlot(names.companion(suffix))).toBe(hashSlot(key));
  },
);

it.each(TYPES)('Locks in memory of type %s need no registryKey', async (lockType) => {
  const registry = new InMemoryLockRegistry({ registryKey: '', lockType });
  const lease = await registry.obtain('report').lock();
  const listed = [];
  for await (const { key } of registry.list()) listed.push(key);
  expect(listed).toEqual(['report']);
  await lease.unlock();
  await registry.close();
});
