import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { LockFormat } from '../../lib/api/lock-types';
import type { Owner, Seen } from '../../lib/kinds/common/look';
import { LOOKS } from '../../lib/kinds/looks';
import { LockNames } from '../../lib/redis/names';
import { CANDIDATES, candidates } from '../../lib/tools/inspection/candidates';
import { type FoundLock, foundLock, hasOtherOwner } from '../../lib/tools/inspection/found-lock';
import { type Asked, serversOf, UNNAMED } from '../../lib/tools/inspection/servers';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, silence } from '../support/mock-redis';

const time = FakeClock.install();

// Where keys are found

/** A server that gives these answers, or errors, one after the other. */
const asked = (...answers: unknown[]) => {
  const sent: string[][] = [];
  const send = async (...command: string[]) => {
    sent.push(command);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { sent, server: { address: 'h:1', send } as unknown as Asked };
};

const steps = async ({ server }: ReturnType<typeof asked>, pattern: string, prefix = 'p') => {
  const all = [];
  for await (const step of candidates(server, { pattern, prefix })) all.push(step);
  return all;
};

it.each(['*', '**'])('All keys are looked at once, in small steps: %s', async (pattern) => {
  const from = asked(['17', 3, '', 'a', 'string', 'b', 'hash'], ['0', 1, 'NOPERM no']);
  expect(await steps(from, pattern)).toEqual([
    {
      looked: 3,
      keys: [
        ['a', 'string'],
        ['b', 'hash'],
      ],
      refused: undefined,
    },
    { looked: 1, keys: [], refused: 'NOPERM no' },
  ]);
  const { source } = CANDIDATES;
  expect(from.sent).toEqual(['0', '17'].map((cursor) => ['EVAL', source, '0', cursor, '*', '500', 'p', '']));
});

it.each(['a*', '*a'])('Some keys are looked at by their names, and by those of their queues: %s', async (pattern) => {
  const from = asked(['0', 1, ''], ['5', 2, ''], ['0', 3, '']);
  expect((await steps(from, pattern)).map(({ looked }) => looked)).toEqual([1, 2, 3]);
  expect(from.sent.map((command) => command.slice(3))).toEqual([
    ['0', pattern, '1000', 'p', ''],
    ['0', `*${pattern}*`, '1000', 'p', '1'],
    ['5', `*${pattern}*`, '1000', 'p', '1'],
  ]);
});

const NO_SCRIPTS = new Error('NOPERM no scripts');

it.each([
  ['at once', []],
  ['when a key is read', [['3', 0, '']]],
])('Where a script is refused, SCAN alone finds keys, of each type: refused %s', async (_, before) => {
  const scans = [
    ['4', ['a', 'b']],
    ['0', ['c']],
    ['0', []],
    ['0', ['d']],
    ['0', []],
  ];
  const from = asked(...before, NO_SCRIPTS, ...scans);
  expect((await steps(from, 'x*')).slice(before.length)).toEqual([
    {
      looked: 2,
      keys: [
        ['a', 'string'],
        ['b', 'string'],
      ],
    },
    { looked: 1, keys: [['c', 'string']] },
    { looked: 0, keys: [] },
    { looked: 1, keys: [['d', 'zset']] },
    { looked: 0, keys: [] },
  ]);
  const scan = (cursor: string, glob: string, type: string) => {
    return ['SCAN', cursor, 'MATCH', glob, 'COUNT', '1000', 'TYPE', type];
  };
  const others = ['hash', 'zset', 'list'].map((type) => scan('0', '*x**', type));
  expect(from.sent.slice(before.length + 1)).toEqual([scan('0', 'x*', 'string'), scan('4', 'x*', 'string'), ...others]);
});

it.each([
  ['no answer', [new Error('Socket closed')]],
  ['an error after keys were read', [['3', 1, ''], NO_SCRIPTS]],
])('What the server does not look at is not looked at otherwise: %s', async (_, answers) => {
  await expect(steps(asked(...answers), '*')).rejects.toBe(answers.at(-1));
});

// Which servers are asked

let intervals: (() => void)[];
const real = { setInterval, clearInterval };

beforeEach(() => {
  intervals = [];
  const set = (look: () => void, ms: number) => {
    expect(ms).toBe(50);
    intervals.push(look);
    return { unref: () => look };
  };
  const clear = (look: unknown) => {
    intervals = intervals.filter((one) => one !== look);
  };
  Object.assign(globalThis, { setInterval: set, clearInterval: clear });
});

afterEach(() => void Object.assign(globalThis, real));

type Client = Parameters<typeof serversOf>[0];
const clientOf = (parts: object = {}): Client =>
  Object.assign(new EventEmitter(), mockRedis(), { sendCommand: async () => 'PONG' }, parts) as never;
const socket = (parts?: object) => ({ options: { socket: parts } });

it.each<[string, object, address: string]>([
  ['that says it', socket({ host: 'h', port: 7 }), 'h:7'],
  ['without a port', socket({ host: 'h' }), UNNAMED],
  ['without a host', socket({ port: 7 }), UNNAMED],
  ['without a socket', { options: {} }, UNNAMED],
  ['without options', {}, UNNAMED],
  ['of a sentinel', { getMasterNode: () => ({ host: 's', port: 8 }), ...socket({ host: 'h', port: 7 }) }, 's:8'],
  ['of a sentinel without a master', { getMasterNode: () => undefined }, UNNAMED],
])('The server of a client has an address: of one %s', async (_, parts, address) => {
  const { asked: servers, ...rest } = await serversOf(clientOf(parts), 50);
  expect(rest).toMatchObject({ missing: [], isCluster: false });
  expect(servers.map((one) => one.address)).toEqual([address]);
});

it.each([
  ['no commands', { sendCommand: undefined }],
  ['one cluster', { slots: [] }],
])('A client that has %s cannot ask each server', async (_, parts) => {
  const { asked: servers, missing, isCluster } = await serversOf(clientOf(parts), 50);
  expect([servers, missing, isCluster]).toEqual([[], ['The client has no way to ask each server'], false]);
});

it('A command is sent as the client wants it, with replies in their own types, and waited for no longer than is said', async () => {
  const sent: unknown[] = [];
  const sendCommand = async function (this: { name?: string }, ...args: unknown[]) {
    sent.push([this.name, ...args]);
    return new Promise(() => undefined);
  };
  const withOptions = { withCommandOptions: (options: object) => ({ name: JSON.stringify(options), sendCommand }) };
  const sentinel = { getMasterNode: () => undefined, sendCommand, name: 'sentinel' };
  for (const parts of [withOptions, sentinel]) {
    const { asked: servers } = await serversOf(clientOf(parts), 50);
    const end = await time.settled(servers[0]?.send('PING', 'x') as Promise<unknown>);
    expect(end).toMatchObject({ after: 50, error: { name: 'CommandTimeoutError' } });
  }
  expect(sent).toEqual([
    ['{"timeout":0,"typeMapping":{}}', ['PING', 'x']],
    ['sentinel', false, ['PING', 'x']],
  ]);
});

it('A server is down when its client has no connection after an error, until nothing is asked any more', async () => {
  const client = clientOf();
  const { asked: servers, close } = await serversOf(client, 50);
  const unawaited = await serversOf(client, 50);
  let down: unknown;
  servers[0]?.down.catch((error: unknown) => (down = error));
  const look = async () => {
    for (const one of intervals) one();
    await time.advance(0);
    return down;
  };
  Object.assign(client, { isReady: false });
  expect(await look()).toBeUndefined();
  Object.assign(client, { isReady: true });
  const refused = new Error('connect ECONNREFUSED');
  const emitter = client as unknown as EventEmitter;
  emitter.on('error', () => undefined);
  emitter.emit('error', refused);
  expect(await look()).toBeUndefined();
  Object.assign(client, { isReady: undefined });
  expect(await look()).toBeUndefined();
  Object.assign(client, { isReady: false });
  expect(await look()).toBe(refused);
  const listeners = emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0);
  for (const end of [close, unawaited.close]) end();
  expect(intervals).toEqual([]);
  expect(emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0)).toBeLessThan(listeners);
});

const node = (port: number, client?: object) => ({ host: 'h', port, client });
const slotsOf = (of: (slot: number) => object | undefined) =>
  Array.from({ length: 16_384 }, (_, slot) => (of(slot) === undefined ? undefined : { master: of(slot) }));

it('All masters of a cluster are asked, and those that cannot be are named', async () => {
  const [one, other, gone] = [node(1), node(2), node(3)];
  const nodeClient = async ({ port }: { port: number }) => {
    if (port === 2) throw new Error('Connection refused');
    return clientOf({ sendCommand: async ([name]: string[]) => `${name} ${port}` });
  };
  const slots = slotsOf((slot) => (slot < 2 ? undefined : [one, other, gone][slot % 3]));
  const {
    asked: servers,
    missing,
    isCluster,
  } = await serversOf(clientOf({ masters: [one, other], slots, nodeClient }), 50);
  expect(servers.map(({ address }) => address)).toEqual(['h:1']);
  expect(await servers[0]?.send('PING')).toBe('PING 1');
  expect([missing, isCluster]).toEqual([
    [
      'h:3 could not be asked: there is no connection to it',
      'No server has 2 of the 16384 slots of the cluster',
      'h:2 could not be asked: Connection refused',
    ],
    true,
  ]);
});

it.each([
  ['late', {}],
  ['down', { client: { isReady: false } }],
])('A master of a cluster that is %s is not waited for', async (what, parts) => {
  const own = { ...node(1), ...parts };
  const client = clientOf({ masters: [own], slots: slotsOf(() => own), nodeClient: silence });
  const finding = time.settled(serversOf(client, 50));
  await time.advance(0);
  const emitter = client as unknown as EventEmitter;
  emitter.on('error', () => undefined);
  for (const text of ['connect ECONNREFUSED h:2', 'connect ECONNREFUSED h:1']) {
    emitter.emit('error', new Error(text));
    for (const look of intervals) look();
    await time.advance(0);
  }
  const why = what === 'late' ? 'Redis did not answer within 50 ms' : 'connect ECONNREFUSED h:1';
  expect(await finding).toMatchObject({
    after: what === 'late' ? 50 : 10,
    value: { asked: [], missing: [`h:1 could not be asked: ${why}`] },
  });
});

it('A master of a cluster is down when its connection is, which the client may keep to itself', async () => {
  for (const isKnown of [true, false]) {
    const connection = clientOf({ isReady: true });
    const own = node(1, isKnown ? connection : undefined);
    const client = clientOf({ masters: [own], slots: slotsOf(() => own), nodeClient: () => connection });
    const { asked: servers } = await serversOf(client, 50);
    const emitter = client as unknown as EventEmitter;
    emitter.on('error', () => undefined);
    emitter.emit('error', new Error('h:1'));
    let isDown = false;
    servers[0]?.down.catch(() => (isDown = true));
    for (const isReady of [true, false]) {
      Object.assign(connection, { isReady });
      for (const look of intervals) look();
      await time.advance(0);
      expect(isDown).toBe(!isReady);
    }
  }
});

// What is said of a lock

const ID = 'AAAAAAAAAAAAAAAAAAAAAA';
const JAVA = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';
const NOW = 1_700_000_000_900;
const OURS = `web-1:${ID}:1700000000000400`;
const lockOf = (
  lock: string,
  owners: Owner[],
  known: Omit<Seen, 'owners'> = {},
  format: FoundLock['format'] = 'spring',
  key?: string,
) => foundLock(lock, format, key, { owners, ...known }, NOW);
const by = (owner: string, remaining: number | null = 500): Owner => ({ owner, remaining });

it.each([
  [2_000, null],
  [500, 0],
  [-500, 500],
])(
  'A lock that was acquired %d ms later than now, by the clock of its process, is held for %p ms',
  (later, heldFor) => {
    const acquiredAt = 1_700_000_000_000;
    const owner = `web-1:${ID}:${acquiredAt}000`;
    const lock = foundLock('r:k', 'spring', undefined, { owners: [{ owner, remaining: 500 }] }, acquiredAt - later);
    expect(lock).toMatchObject({ acquiredAt, heldFor });
    expect(lock?.holders).toMatchObject([{ acquiredAt, heldFor }]);
  },
);

it('All is said of a lock of this library', () => {
  const first = { remaining: 500, acquiredAt: 1_700_000_000_000, heldFor: 900 };
  expect(lockOf('r:k', [by(OURS), by(`kept@web-2:${ID}:7*3`, -1)], { fencingToken: 4 })).toEqual({
    ...{ lock: 'r:k', registryKey: 'r', key: 'k', kind: 'lock', format: 'spring', type: null },
    ...{
      types: ['spin', 'pub-sub', 'fair'],
      typeName: 'spin, pub-sub or fair',
      isSure: true,
      isCertain: true,
      isWaitingExact: true,
    },
    ...{ holder: 'web-1', owner: OURS, isKept: false, ...first, renewed: null, permits: null, waiting: 0 },
    holders: [
      { holder: 'web-1', owner: OURS, isKept: false, permits: 1, ...first },
      {
        ...{ holder: 'web-2', owner: `kept@web-2:${ID}:7*3`, isKept: true, permits: 3 },
        ...{ remaining: null, acquiredAt: null, heldFor: null },
      },
    ],
    ...{ queue: null, fencingToken: 4 },
  });
});

it('Nothing is shown of what may be data of an application, though it is compared', () => {
  const unsure = { isSure: false, listeners: 3 };
  const lock = lockOf('r:k', [by(`kept@${OURS}`)], unsure) as FoundLock;
  const hidden = { holder: 'not shown', owner: 'not shown', isKept: false };
  expect(lock).toMatchObject({ ...hidden, isSure: false, waiting: 3, isWaitingExact: false });
  expect(lock.holders).toMatchObject([{ ...hidden, permits: 1 }]);
  const others = [`kept@${OURS}`, 'another'].map((owner) => lockOf('r:k', [by(owner)], unsure) as FoundLock);
  expect(others.map((one) => hasOtherOwner(lock, one))).toEqual([false, true]);
  const [one, other] = [OURS, JAVA].map((owner) => lockOf('k', [by(owner)]) as FoundLock) as [FoundLock, FoundLock];
  expect([hasOtherOwner(one, one), hasOtherOwner(one, other)]).toEqual([false, true]);
  expect(hasOtherOwner({ ...one, format: 'shared' }, other)).toBe(false);
  const waited = lockOf('k', [], { ...unsure, queue: [{ owner: OURS }] }) as FoundLock;
  expect(hasOtherOwner(waited, { ...waited, owner: '' })).toBe(false);
});

it.each<[string, Owner[], Omit<Seen, 'owners'>, object | undefined]>([
  ['nobody', [], {}, undefined],
  ['a key that has ended', [by(OURS), by(OURS, -2)], {}, undefined],
  ['a key that may not be read', [by(OURS, null), by(OURS)], {}, undefined],
  [
    'a waiter only',
    [],
    {
      queue: [
        { owner: `kept@${OURS}`, since: NOW - 5.4 },
        { owner: 'ada', kind: 'read', since: NOW + 9 },
        { owner: 'bob' },
      ],
    },
    {
      ...{ holder: null, owner: null, remaining: 0, isKept: false, acquiredAt: null, heldFor: null, waiting: 3 },
      queue: [
        { position: 1, waiter: 'web-1', owner: `kept@${OURS}`, kind: 'lock', waitingFor: 5 },
        { position: 2, waiter: 'ada', owner: 'ada', kind: 'read', waitingFor: 0 },
        { position: 3, waiter: 'bob', owner: 'bob', kind: 'lock', waitingFor: null },
      ],
    },
  ],
  ['listeners that are not known', [by(OURS)], { listeners: null }, { waiting: null, isWaitingExact: false }],
])('A lock is had by %s', (_, owners, known, expected) => {
  const lock = lockOf('r:k', owners, known);
  if (expected === undefined) expect(lock).toBeUndefined();
  else expect(lock).toMatchObject(expected);
});

it.each<[lock: string, FoundLock['format'], given: string | undefined, expected: (string | null)[]]>([
  ['r:k', 'spring', undefined, ['r', 'k']],
  ['reg:key', 'spring', undefined, ['reg', 'key']],
  ['r:k:l', 'spring', undefined, [null, null]],
  ['k', 'spring', undefined, ['', 'k']],
  ['k', 'redisson', undefined, [null, null]],
  [':k', 'spring', undefined, [null, null]],
  ['r:', 'spring', undefined, [null, null]],
  ['r:k', 'redisson', undefined, [null, null]],
  ['r:k', 'redisson', '', ['', 'r:k']],
  ['r:k:l', 'spring', 'r:k', ['r:k', 'l']],
])('The name of a lock has two parts, as far as that is known: %s, %s, %s', (lock, format, given, expected) => {
  const { registryKey, key } = lockOf(lock, [by(OURS)], {}, format, given) ?? {};
  expect([registryKey, key]).toEqual(expected);
});

it.each<[owner: string | undefined, Pick<Seen, 'type' | 'others'>, FoundLock['format'], name: string]>([
  [OURS, { type: 'fair' }, 'spring', 'fair'],
  [OURS, {}, 'redisson', 'redisson or redisson-fair'],
  [OURS, { others: 'Java' }, 'redisson', 'redisson or redisson-fair'],
  [OURS, {}, 'shared', ''],
  [undefined, { type: 'redisson-fair' }, 'redisson', 'redisson-fair'],
  [JAVA, {}, 'spring', 'others (UUID)'],
  [JAVA, { others: 'Java' }, 'spring', 'Java'],
  ['0f'.repeat(16), {}, 'spring', 'others (32 hex digits)'],
  ['a\ufffd', {}, 'spring', 'others (bytes that are no text)'],
  ['p4ssw0rd', {}, 'spring', 'others'],
  ['by hand', {}, 'spring', 'others'],
])('A lock has the name of its type, or of whose it is: %s, %j, %s', (owner, seen, format, name) => {
  const owners = owner === undefined ? [] : [by(owner)];
  expect(lockOf('k', owners, { ...seen, queue: [{ owner: OURS }] }, format)?.typeName).toBe(name);
});

it.each<[LockFormat, owner: string, queue: string[], others: string | undefined]>([
  ['spring', OURS, [], undefined],
  ['spring', JAVA, [], undefined],
  ['redisson', OURS, [], undefined],
  ['redisson', `${JAVA}:7`, [], 'Redisson (Java)'],
  ['redisson', `${JAVA}:7`, [`${JAVA}:8`], 'Redisson, fair (Java)'],
])('The look of a format says whose lock it is: %s, %s, %j', async (format, owner, queue, others) => {
  const answers: Record<string, unknown> = { HLEN: 1, HKEYS: [owner], GETRANGE: owner, PTTL: 9_000, LRANGE: queue };
  const heard = { of: () => null, has: () => false, below: () => false };
  const reader = { heard, isOfRegistry: true, now: () => NOW, ask: async (name = '') => answers[name] ?? null };
  expect((await LOOKS[format].held(new LockNames('', 'r:k'), reader))?.others).toBe(others);
});
