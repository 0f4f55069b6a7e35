import { describe, expect, it } from '@jest/globals';
import { type Lease, type LockRegistry, RedisLockRegistry, type RedisLockRegistryOptions } from '../../../lib';
import { InMemoryLockRegistry } from '../../../lib/testing';
import { createRealClient, describeReal, uniqueKey } from '../../support/redis';

const ID = 'h0pCmsO5S7mSQpHDOZJ1Sw';

/** What `detach()` returns, with changes. */
const text = (change: (fields: string[]) => unknown = () => undefined) => {
  const fields = ['lease/1', 'spring', `detached@web-7:4121:${ID}:1700000000123456`, '60000', 'fixed', '0', 'test:key'];
  change(fields);
  return fields.join(' ');
};

it('A text that was adopted before is told so, and by whom where that is known', async () => {
  const registry = new InMemoryLockRegistry();
  const other = new InMemoryLockRegistry({ locks: registry.locks });
  const passport = await (await registry.obtain('key').lock()).detach();
  const lease = await registry.adopt(passport);
  const again = 'Lock "key" was lost (stolen): it was adopted already, by this registry, which holds it';
  await expect(registry.adopt(passport)).rejects.toThrow(again);
  await expect(other.adopt(passport)).rejects.toThrow(
    '(stolen): another owner has its key: it was adopted already, or',
  );
  await lease.unlock();
  const over = 'Lock "key" was lost (expired): it was adopted already and is over, its ttl ended before, or its key';
  for (const one of [registry, other]) await expect(one.adopt(passport)).rejects.toThrow(over);
  const next = await registry.obtain('key').lock();
  await expect(registry.adopt(passport)).rejects.toThrow('another owner has its key: it was adopted already, or');
  await next.unlock();
});

describe('What adopt() refuses', () => {
  const registry = new InMemoryLockRegistry();
  const refusal = (passport: unknown, options?: object) =>
    registry.adopt(passport as string, options).catch((error: unknown) => error as Error);

  it('a text that detach() did not return is refused with TypeError, and is not shown, since it may be a secret', async () => {
    const changes: readonly ((fields: string[]) => unknown)[] = [
      (fields) => fields.pop(),
      (fields) => fields.push('secret'),
      (fields) => (fields[2] = `secret:4121:${ID}:1`),
      (fields) => (fields[2] = 'detached@secret'),
      (fields) => (fields[6] = 'test:%'),
      (fields) => (fields[3] = '0'),
      (fields) => (fields[3] = '1e3'),
      (fields) => (fields[1] = 'secret'),
      (fields) => (fields[4] = 'secret'),
    ];
    const secrets = ['redis://user:secret@host', 'secret', '', ...changes.map(text)];
    for (const secret of secrets) {
      const error = await refusal(secret);
      expect(error).toBeInstanceOf(TypeError);
      const { message } = error as Error;
      expect(message).toBe(
        `Expected \`passport\` to be a text that detach() returned, got another of ${secret.length} characters`,
      );
    }
    for (const value of [undefined, null, 5, {}]) {
      const message = expect.stringContaining('Expected `passport` to be a text that detach() returned, got');
      expect(await refusal(value)).toMatchObject({ name: 'TypeError', message });
    }
  });

  it('a text of another version, format or registry is refused with TypeError, which says what it is', async () => {
    const [version, format, lock, prefix] = await Promise.all([
      refusal(text((fields) => (fields[0] = 'lease/2'))),
      refusal(text((fields) => (fields[1] = 'redisson'))),
      refusal(text((fields) => (fields[6] = 'other:key'))),
      refusal(text((fields) => (fields[6] = 'test:'))),
    ]);
    for (const error of [version, format, lock, prefix]) expect(error).toBeInstanceOf(TypeError);
    expect(version).toMatchObject({ message: 'Expected `passport` to be of version 1, got version 2' });
    expect(format).toMatchObject({
      message:
        "Expected `passport` to be of a lock of type spin, pub-sub or fair, got that of a lock of type redisson or redisson-fair, 'test:key'",
    });
    const expectation = "Expected `passport` to be of a lock whose name in Redis begins with 'test:', got that of";
    expect(lock).toMatchObject({ message: `${expectation} 'other:key'` });
    expect(prefix).toMatchObject({ message: `${expectation} 'test:'` });
  });

  it('options that are not valid are refused, before anything is sent', async () => {
    registry.locks.goSilent();
    expect(await refusal(text(), { ttl: 1 })).toBeInstanceOf(RangeError);
    expect(await refusal(text(), { ttl: 10, renew: true })).toBeInstanceOf(RangeError);
    expect(await refusal(text(), { renew: 1 })).toBeInstanceOf(TypeError);
    expect(await refusal(text(), { waitTime: 1 })).toMatchObject({ name: 'TypeError' });
    registry.locks.comeBack();
    expect(await refusal(text())).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'expired' });
  });
});

/** What holds a lock, and whether its lease may travel. */
function whatDoesNotTravel(registryOf: (options: Partial<RedisLockRegistryOptions>) => Promise<LockRegistry>): void {
  const cases: readonly [string, string, (registry: LockRegistry) => Promise<Lease>][] = [
    ['a semaphore', 'a lock of type semaphore', (registry) => registry.semaphore('key', { permits: 2 }).lock()],
    ['a reader', 'a lock of type read', (registry) => registry.readWrite('key').read.lock()],
    ['a writer', 'a lock of type write', (registry) => registry.readWrite('key').write.lock()],
    ['several keys', '2 keys', (registry) => registry.multi(['one', 'other']).lock()],
  ];
  it.each(cases)('detach() refuses the lease of %s, which stays as it is', async (_, whose, lock) => {
    const lease = await lock(await registryOf({}));
    const error = await lease.detach().catch((one: unknown) => one);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({
      message: expect.stringContaining(`The lease of ${whose} cannot travel to another process: `),
    });
    lease.assertHeld();
    await lease.unlock();
  });

  it('detach() and adopt() refuse the lease of a lock of type redisson-fair', async () => {
    const registry = await registryOf({ lockType: 'redisson-fair' });
    const message = 'The lease of a lock of type redisson-fair cannot travel to another process';
    await registry.run('key', (lease) => expect(lease.detach()).rejects.toThrow(message));
    const passport = await (await (await registryOf({ lockType: 'redisson' })).obtain('key').lock()).detach();
    await expect(registry.adopt(passport)).rejects.toThrow(message);
  });
}

describe('What cannot travel, in memory', () => {
  whatDoesNotTravel(async (options) => new InMemoryLockRegistry(options));
});

describeReal('What cannot travel, in Redis', () => {
  const registryKey = uniqueKey('travel');
  whatDoesNotTravel(async (options) => new RedisLockRegistry(await createRealClient(), { registryKey, ...options }));
});
