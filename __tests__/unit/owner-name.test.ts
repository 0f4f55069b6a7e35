import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { describe, expect, it, jest } from '@jest/globals';
import type { LockType } from '../../lib';
import { traitsOf } from '../../lib/api/lock-types';
import { acquiredAtIn, describeForm, isOfRegistry, nameIn, permitsIn } from '../../lib/api/owner-name';
import { LOCK_TYPES } from '../../lib/kinds';
import { mockRedis } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

const registryOf = (lockType: LockType, name?: string) => createRegistry(mockRedis(), { lockType, name }).registry;

describe.each(LOCK_TYPES)('The owner values of a %s registry', (lockType) => {
  it('The owner values of a registry begin with its name, which can be read from them', () => {
    const { id } = registryOf(lockType, 'web-7');
    expect(id).toMatch(/^web-7[:/][\w-]{22}$/);
    expect(nameIn(`${id}:17`)).toBe('web-7');
    expect(nameIn(`${id}:17@1700000000000001`)).toBe('web-7');
    expect(nameIn(`${id}:17*3`)).toBe('web-7');
    expect([`${id}:17`, `${id}:17*3`, `kept@${id}:17*12`].map(permitsIn)).toEqual([1, 3, 12]);
  });

  it('The owner values of a registry say when the lock was acquired, if they are not of a version that counted', () => {
    const { id } = registryOf(lockType);
    const values = [`${id}:1700000000123456`, `kept@${id}:1700000000123456*3`, `${id}:17@1700000000123456`];
    expect(values.map(acquiredAtIn)).toEqual([1_700_000_000_123, 1_700_000_000_123, 1_700_000_000_123]);
    expect([`${id}:17`, `${id}:17*3`, `${randomUUID()}:1700000000123456`].map(acquiredAtIn)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('The owner values of a registry are those of no other registry with the same name', () => {
    const [one, other] = [registryOf(lockType, 'web-7'), registryOf(lockType, 'web-7')];
    expect(isOfRegistry(`${one.id}:1`, one.id)).toBe(true);
    expect(isOfRegistry(`${one.id}:1`, other.id)).toBe(false);
  });

  it('The owner values of a registry name the process by default', () => {
    expect(nameIn(`${registryOf(lockType).id}:1`)).toMatch(new RegExp(`^${os.hostname()}[:/]${process.pid}$`));
  });

  it.each([
    ['ü'.repeat(80), /^ü{20,31}.\d+$/],
    ['a b:c/d@e', /^a-b-c-d-e.\d+$/],
    ['', /^unnamed.\d+$/],
  ])('The owner values of a registry name the process of a machine that is called %p', (machine, name) => {
    const called = jest.spyOn(os, 'hostname').mockReturnValue(machine);
    expect(nameIn(`${registryOf(lockType).id}:1`)).toMatch(name);
    called.mockRestore();
  });

  it('The owner values of a registry have one colon with the Redisson types, as Redisson has it: that before the number', () => {
    const { id } = registryOf(lockType);
    expect(id.includes(':')).toBe(traitsOf(lockType).nameSeparator === ':');
  });

  it.each(['web 7', 'web\n7', 'web@7', '{web}', '\u0000', 'ä'.repeat(33), '\ud800'])(
    'The owner values of a registry refuse the name %p',
    (name) => {
      expect(() => registryOf(lockType, name)).toThrow(/`name`/);
    },
  );
});

it('A name of 64 bytes, and one with colons, is allowed', () => {
  expect(registryOf('spin', 'ä'.repeat(32)).id).toContain('ä'.repeat(32));
  expect(nameIn(`${registryOf('fair', 'eu:web:7').id}:3`)).toBe('eu:web:7');
});

it.each(['redisson', 'redisson-fair'] as const)('A name with a colon is a RangeError for %s', (lockType) => {
  expect(() => registryOf(lockType, 'eu:web')).toThrow(RangeError);
  expect(() => registryOf(lockType, 'eu:web')).toThrow(/"?eu:web/);
});

it.each(['8bfa1e76-70c1-4b13-9c53-7b3a3f6a2a0e:1', 'a user of redis-cli', 'spring'])('%s has no name', (owner) => {
  expect(nameIn(owner)).toBeUndefined();
});

it.each([
  ['0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11', 'in the form of Spring, redis-semaphore, pottery and sherlock (UUID)'],
  ['0f'.repeat(16), 'in the form of redis-py, redlock and redlock-universal (32 hex digits)'],
  ['q83vEjRWeJCrze8SNFZ4kA==', 'in the form of redsync (base64)'],
  ['ADDED:2026-11-28T16:18:00.123Z@host:uuid', 'in the form of ShedLock (ADDED, a time and a host)'],
  ['a{ff}b', 'in the form of rslock, rueidislock and walrus (bytes that are no text)'],
  ['a\ufffdb', 'in the form of rslock, rueidislock and walrus (bytes that are no text)'],
  ['hunter2', 'in no form that is known'],
  ['', 'in no form that is known'],
  ['web-1:h0pCmsO5S7mSQpHDOZJ1Sw:1795557762000000', 'in no form that is known'],
])('The value %j of another program is described without it', (value, described) => {
  expect(describeForm(value)).toBe(described);
});
