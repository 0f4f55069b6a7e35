import { expect, it } from '@jest/globals';
import type { Inspected, LockBackend, LockInspector } from '../../lib/core/backend';
import { Inspection } from '../../lib/core/inspection';
import { LockNames } from '../../lib/redis/names';

const ID = 'web-7:4121:h0pCmsO5S7mSQpHDOZJ1Sw';
const OWNER = `${ID}:1700000000123456`;

type Answer = Partial<Inspected> | Error;

/** An inspection of locks by their names in Redis; `shared`: what is answered about shared locks. */
function inspectionOf(
  answers: Record<string, Answer>,
  shared: Answer = new Error('WRONGTYPE no'),
  names: string[] = [],
) {
  const inspector = (answerTo: (name: string) => Answer | undefined) => {
    const ask = async ({ lock }: LockNames) => {
      const answer = answerTo(lock) ?? {};
      if (answer instanceof Error) throw answer;
      return answer;
    };
    return { inspect: ask, forceUnlock: ask } as unknown as LockInspector;
  };
  const keys = async function* () {
    yield names;
  };
  const own = inspector((name) => answers[name]);
  const explainWrongType = async (error: Error, _: LockNames, usedAs: string) =>
    new Error(`${error.message}, used as ${usedAs}`, { cause: error });
  const backend = {
    ...{ connection: {}, inspector: own, shared: { inspector: inspector(() => shared) }, keys },
    explainWrongType,
  };
  return new Inspection(backend as unknown as LockBackend, ID, 1_000, 'a lock');
}

const names = new LockNames('', 'key');

it('What is said of a lock is that of its owner value, or nothing where it is free', async () => {
  const stateOf = (answer: Answer) => inspectionOf({ key: answer }).inspect('key', names);
  const ours = { held: true, owner: OWNER, name: 'web-7:4121', isOurs: true, acquiredAt: 1_700_000_000_123 };
  expect(await stateOf({ owner: OWNER })).toEqual(ours);
  expect(await stateOf({ owner: OWNER, acquiredAt: 7, holders: 2 })).toEqual({ ...ours, acquiredAt: 7, holders: 2 });
  const free = await stateOf({});
  expect(free).toMatchObject({ held: false, name: undefined, isOurs: false, acquiredAt: undefined });
  expect(free).not.toHaveProperty('holders');
});

it.each([
  ['', ['a', 'data', 'free', 'a'], ['a']],
  ['orders', ['orders:', 'orders:a', 'orders:data', 'orders:free'], ['a', 'data']],
])(
  'Locks of the registryKey %j are listed once each, and no data of an application without one',
  async (key, all, listed) => {
    const held = { '': { owner: OWNER }, a: { owner: OWNER }, data: { owner: 'secret' } };
    const named = Object.entries(held).map(([name, answer]) => [key === '' ? name : `${key}:${name}`, answer]);
    const found: string[] = [];
    for await (const lock of inspectionOf(Object.fromEntries(named), undefined, all).list(key, '*', 10))
      found.push(lock.key);
    expect(found).toEqual(listed);
  },
);

it.each([
  ['READONLY a replica', 'Lock "key" was not unlocked by force'],
  ['WRONGTYPE a list', 'Lock "key" was not unlocked by force'],
  ['NOPERM no right to EVALSHA', 'Lock "key" was not unlocked by force'],
  ['ERR ACL failure in script: No permissions to access a key', 'It is not known whether lock "key" was unlocked by'],
  ['NOPERM user_script:3: no right to DEL', 'It is not known whether lock "key" was unlocked by force'],
  ['LOADING Redis', 'It is not known whether lock "key" was unlocked by force'],
])('A forced unlock that is answered with %j says what is known', async (message, said) => {
  await expect(inspectionOf({ key: new Error(message) }).forceUnlock('key', names)).rejects.toThrow(said);
});

it.each<[string, Answer, string | undefined]>([
  ['LOADING Redis', { owner: OWNER }, 'LOADING Redis'],
  ['WRONGTYPE a set', { owner: OWNER }, undefined],
  ['WRONGTYPE a set', new Error('NOPERM no'), 'WRONGTYPE a set'],
  ['WRONGTYPE a set', new Error('ERR ACL failure in script: No permissions to access a key'), 'WRONGTYPE a set'],
  ['WRONGTYPE a set', new RangeError('no hash tag'), 'WRONGTYPE a set'],
  ['WRONGTYPE a set', new Error('LOADING Redis'), 'LOADING Redis'],
  ['WRONGTYPE a set', new Error('Socket closed'), 'Socket closed'],
])('After %j, a shared lock of that name is asked about, with %p', async (message, shared, failure) => {
  const inspecting = inspectionOf({ key: new Error(message) }, shared).inspect('key', names);
  if (failure === undefined) expect((await inspecting).owner).toBe(OWNER);
  else await expect(inspecting).rejects.toThrow(failure);
});

it('An inspection and a forced unlock of a key of another type say what the key is used as', async () => {
  const inspection = inspectionOf({ key: new Error('WRONGTYPE a set') });
  const said = ': WRONGTYPE a set, used as a lock';
  await expect(inspection.inspect('key', names)).rejects.toThrow(`Lock "key" could not be inspected${said}`);
  await expect(inspection.forceUnlock('key', names)).rejects.toThrow(`Lock "key" was not unlocked by force${said}`);
});

it.each([
  "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
  'ERR ACL failure in script: User ops has no permissions to access one of the keys used as arguments',
])('A key of another type is no shared lock where its user may not ask for one: %j', async (message) => {
  const inspection = inspectionOf({ key: new Error('WRONGTYPE a set') }, new Error(message));
  await expect(inspection.inspect('key', names)).rejects.toThrow('WRONGTYPE a set');
});
