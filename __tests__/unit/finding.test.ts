import { beforeEach, expect, it } from '@jest/globals';
import { globPattern } from '../../lib/redis/names';
import { finderOf, findLocks, forceUnlock, type Search } from '../../lib/tools/inspection/find-locks';
import type { FoundLock } from '../../lib/tools/inspection/found-lock';
import { History } from '../../lib/tools/inspection/history';
import { FakeClock } from '../support/fake-clock';
import { mockRedis } from '../support/mock-redis';

const time = FakeClock.install();

/** ms since 1970, by the server, when the clock stands at 1,000. */
const NOW = 1_700_000_000_500;

const ID = 'AAAAAAAAAAAAAAAAAAAAAA';
const JAVA = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';
const OURS = `web-1:${ID}:1`;
const OTHER = `web-2:${ID}:1`;

/** A string, the fields of a hash, the members of a zset with their scores, or a list. `ttl`: as PTTL answers. */
interface Key {
  readonly type: 'string' | 'hash' | 'zset' | 'list' | 'set';
  readonly value: unknown;
  readonly ttl?: number;
}

const string = (value: string, ttl = 500): Key => ({ type: 'string', value, ttl });
const hash = (value: object, ttl = 500): Key => ({ type: 'hash', value, ttl });
const zset = (...value: [string, number][]): Key => ({ type: 'zset', value });
const list = (...value: string[]): Key => ({ type: 'list', value });
type Data = Record<string, Key>;

/** What a server answers, without scripts: then SCAN alone finds keys. */
class FakeServer {
  data: Data;
  channels: Record<string, number> = {};
  sharded: Record<string, number> = {};
  /** By the first words of a command: its answer, or the error that it is answered with. */
  answers: Record<string, unknown> = { EVAL: new Error('NOPERM no scripts') };
  sent: string[] = [];

  constructor(data: Data = {}) {
    this.data = data;
  }

  readonly send = async ([...command]: string[]): Promise<unknown> => {
    const text = command.join(' ');
    this.sent.push(text);
    const known = Object.keys(this.answers).find((start) => text.startsWith(start));
    if (known === undefined) return this.#answer(command);
    const answer = this.answers[known];
    if (answer instanceof Error) throw answer;
    return typeof answer === 'function' ? answer(command) : answer;
  };

  #answer([name, key = '', ...args]: string[]): unknown {
    const { type = 'none', value, ttl = -2 } = this.data[key] ?? {};
    const of = (wanted: string): boolean => {
      if (type !== 'none' && type !== wanted) throw new Error('WRONGTYPE Operation against a key');
      return type === wanted;
    };
    if (name === 'TIME') return [String(NOW / 1_000).split('.')[0], '500000'];
    if (name === 'TYPE') return type;
    if (name === 'PTTL') return ttl;
    if (name === 'GET') return of('string') ? value : null;
    if (name === 'GETRANGE') return of('string') ? (value as string).slice(Number(args[0]), Number(args[1]) + 1) : '';
    if (name === 'HLEN') return of('hash') ? Object.keys(value as object).length : 0;
    if (name === 'HKEYS') return of('hash') ? Object.keys(value as object) : [];
    if (name === 'HGETALL') return of('hash') ? Object.entries(value as object).flat() : [];
    if (name?.endsWith('RANGE') && (args[0] === '' || args[1] === '')) throw new Error('ERR value is not an integer');
    if (name === 'LRANGE') return of('list') ? value : [];
    if (name === 'ZRANGE') return of('zset') ? this.#range(value as [string, number][], args) : [];
    if (name === 'PUBSUB') return this.#listening(key, args);
    const [, glob = '', , , , only] = args;
    const names = Object.keys(this.data).filter((one) => globPattern(glob).test(one) && this.data[one]?.type === only);
    return ['0', names];
  }

  #range(members: [string, number][], [first, last, scores]: string[]): unknown[] {
    const end = Number(last) < 0 ? members.length : Number(last) + 1;
    return members.slice(Number(first), end).flatMap(([one, score]) => (scores ? [one, String(score)] : [one]));
  }

  #listening(what: string, args: string[]): unknown[] {
    const channels = what.startsWith('SHARD') ? this.sharded : this.channels;
    if (what.endsWith('CHANNELS')) return Object.keys(channels).filter((one) => globPattern(args[0] ?? '').test(one));
    return args.flatMap((one) => [one, channels[one]]);
  }
}

let server: FakeServer;
const clientOf = (one = server, address = { host: 'h', port: 1 }) =>
  ({ ...mockRedis(), options: { socket: address }, sendCommand: one.send }) as never;

beforeEach(() => {
  server = new FakeServer();
});

const find = async (data: Data, search?: Search) => {
  server.data = data;
  return findLocks(clientOf(), search);
};
const found = async (data: Data, search?: Search) => (await find(data, search)).locks;

const ahead = (ms: number) => NOW + ms;

const FENCE = { '{r:k}:fence': string('7', -1) };
const IN_QUEUE = { '{r:k}:queue': zset([OTHER, 1]) };
const OF_OURS = hash({ [OURS]: '1' });
const OF_JAVA = hash({ [`${JAVA}:9`]: '1' });
const TOKEN = { 'redisson_lock_token:{r:k}': string('8', -1) };
const IN_LIST = { 'redisson_lock_queue:{r:k}': list(`${JAVA}:9`) };
const REGISTRY = { registryKey: 'r' };
const ONE = { waiting: 1, isWaitingExact: true };
const NOT_SHOWN = { isSure: false, holder: 'not shown', owner: 'not shown' };

it.each<[string, Data, Search, expected: object | undefined]>([
  ['of this library', { 'r:k': string(OURS) }, {}, { owner: OURS, remaining: 500, isSure: true, type: null }],
  ['with a token', { 'r:k': string(OURS), ...FENCE }, {}, { fencingToken: 7 }],
  ['without a token', { 'r:k': string(OURS) }, {}, { fencingToken: null, waiting: null, isWaitingExact: false }],
  ['with what is no token', { 'r:k': string(OURS), '{r:k}:fence': string('x') }, {}, { fencingToken: null }],
  ['with a queue', { 'r:k': string(OURS), ...IN_QUEUE }, {}, { type: 'fair', ...ONE }],
  ['granted by its queue', { 'r:k': string(`${OURS}@5`) }, {}, { type: 'fair', waiting: 0, queue: null }],
  ['that is kept', { 'r:k': string(`kept@${OURS}`) }, {}, { type: null, isKept: true }],
  ['without an expiry', { 'r:k': string(OURS, -1) }, {}, { remaining: null, isSure: true }],
  ['that has ended by now', { 'r:k': string(OURS, -2) }, { type: 'spin' }, undefined],
  ['of Java', { 'r:k': string(JAVA) }, {}, { ...NOT_SHOWN, format: 'spring' }],
  ['of Java, with its registryKey', { 'r:k': string(JAVA) }, REGISTRY, { isSure: true, owner: JAVA }],
  ['of Java, by its name', { 'r:k': string(JAVA) }, { registryKey: '' }, NOT_SHOWN],
  ['of Java, with a token', { 'r:k': string(JAVA), ...FENCE }, {}, { isSure: true, owner: JAVA }],
  ['of Java, with a queue', { 'r:k': string(JAVA), ...IN_QUEUE }, {}, { isSure: true, type: 'fair' }],
  ['of Java, that never expires', { 'r:k': string(JAVA, -1), ...FENCE }, {}, undefined],
  ['with its registryKey that never expires', { 'r:k': string(JAVA, -1) }, REGISTRY, { ...NOT_SHOWN, remaining: null }],
  ['with any value', { 'r:k': string('secret') }, {}, undefined],
  ['with any value and a token', { 'r:k': string('secret'), ...FENCE }, {}, undefined],
  ['with any value and its registryKey', { 'r:k': string('secret'), ...FENCE }, REGISTRY, NOT_SHOWN],
  ['with no value', { 'r:k': string('') }, {}, undefined],
  ['with no value and its registryKey', { 'r:k': string('') }, REGISTRY, NOT_SHOWN],
  ['in a hash', { 'r:k': OF_OURS }, {}, { format: 'redisson', owner: OURS, isSure: true, type: null }],
  ['in a hash without an expiry', { 'r:k': hash({ [OURS]: '1' }, -1) }, {}, { isSure: true, remaining: null }],
  ['in a hash of several', { 'r:k': hash({ [OURS]: '1', more: '1' }) }, {}, undefined],
  ['in a hash of another value', { 'r:k': hash({ secret: '1' }) }, REGISTRY, undefined],
  ['in a hash of Java', { 'r:k': OF_JAVA }, {}, { ...NOT_SHOWN, waiting: null }],
  ['in a hash of Java, with its registryKey', { 'r:k': OF_JAVA }, REGISTRY, { isSure: true }],
  ['in a hash of Java, with a token', { 'r:k': OF_JAVA, ...TOKEN }, {}, { isSure: true, fencingToken: 8 }],
  ['in a hash of Java, queued', { 'r:k': OF_JAVA, ...IN_LIST }, {}, { isSure: true, type: 'redisson-fair', ...ONE }],
  ['in a hash of Java that never expires', { 'r:k': hash({ [`${JAVA}:9`]: '1' }, -1) }, {}, undefined],
  ['of which that is known', { 'r:k': hash({ [`${JAVA}:9`]: '1' }, -1), ...TOKEN }, {}, NOT_SHOWN],
  ['in another key', { 'r:k': { type: 'set', value: [] } }, { key: 'r:k' }, undefined],
  ['in a list', { 'r:k': list(OURS) }, {}, undefined],
  ['by a key that is another', { 'r::k': string(OURS) }, { registryKey: 'r', key: 'k' }, undefined],
  [
    'in a zset of others',
    { 'r:k': zset(['ada', 1]), '{r:k}:waiters': hash({ [`read:${OURS}`]: `1:${NOW + 9}` }) },
    {},
    undefined,
  ],
])('A lock is found as its key is: %s', async (_, data, search, expected) => {
  const { locks, missing } = await find(data, search);
  expect([locks.length, missing]).toEqual([expected === undefined ? 0 : 1, []]);
  if (expected !== undefined) expect(locks[0]).toMatchObject({ lock: 'r:k', ...expected });
});

it.each<[string, Key, channels: Record<string, number>, expected: object]>([
  ['to its releases', string(OURS), { 'r-channel:r:k': 2 }, { registryKey: 'r', type: 'pub-sub', waiting: 2 }],
  ['to those of Java', string(JAVA), { 'r-channel:r:k': 1 }, { isSure: true, waiting: 1 }],
  ['to those of another', string(JAVA), { 'xr-channel:r:k': 1 }, { isSure: false, waiting: null }],
  [
    'without a registryKey',
    string(OURS),
    { '-channel:r:k': 2 },
    { registryKey: '', key: 'r:k', type: 'pub-sub', waiting: 2 },
  ],
  ['to Redisson', OF_JAVA, { 'redisson_lock__channel:{r:k}': 3 }, { isSure: true, waiting: 3 }],
  ['to a lock with "channel" in it', string(OURS), { 'redisson_lock__channel:a-channel:a:b': 3 }, { waiting: null }],
])('Those that listen are counted: %s', async (_, key, channels, expected) => {
  server.channels = channels;
  expect(await found({ 'r:k': key })).toMatchObject([expected]);
});

it('A lock of Java has the same holder while it is shown as one and while it is not, and another one after a change', async () => {
  const history = new History();
  const changes = async (owner: string, listeners: number) => {
    server.channels = listeners > 0 ? { 'r-channel:r:k': listeners } : {};
    time.now += 1_000;
    const news = history.update(await found({ 'r:k': string(owner) }), time.now);
    const [{ heldFor, holder } = {}] = history.seen(time.now);
    return [...news.map(({ what }) => what), holder, heldFor];
  };
  expect(await changes(JAVA, 0)).toEqual(['not shown', null]);
  expect(await changes(JAVA, 1)).toEqual([JAVA, 1_000]);
  expect(await changes(JAVA, 0)).toEqual(['not shown', 2_000]);
  const other = JAVA.replace('0b', '0c');
  expect(await changes(other, 0)).toEqual(['taken', 'not shown', 0]);
  expect(await changes(other, 1)).toEqual([other, 1_000]);
});

it('Who listens is not known where a server does not say it', async () => {
  server.channels = { 'ab-channel:ab:b:c': 2 };
  const lock = { 'ab:b:c': string(OURS) };
  expect(await found(lock)).toMatchObject([{ waiting: 2, registryKey: 'ab' }]);
  server.sent = [];
  server.answers = { ...server.answers, 'PUBSUB NUMSUB': new Error('NOPERM no') };
  const { locks, missing } = await find(lock);
  expect([locks[0]?.waiting, locks[0]?.registryKey, missing]).toEqual([null, null, []]);
  expect(server.sent.filter((text) => text.startsWith('PUBSUB'))).toEqual([
    ...['*-channel:*', '{*}:grants:*', 'redisson_lock__channel:*'].map((pattern) => `PUBSUB CHANNELS ${pattern}`),
    'PUBSUB NUMSUB ab-channel:ab:b:c',
  ]);
});

const ticket = (ago: number, until = 1_000) => `${(NOW - ago) * 1_000}:${ahead(until)}:${ahead(until)}:${ahead(until)}`;

it.each<[string, Data, expected: object]>([
  [
    'a semaphore',
    {
      'r:k': zset(
        ...([
          ['semaphore:held', -3],
          ['semaphore:leases', -2],
          [`semaphore:${OTHER}`, ahead(0)],
        ] as [string, number][]),
        [`semaphore:${OURS}*2`, ahead(0.4)],
        [`semaphore:kept@${OTHER}`, ahead(100)],
        ['semaphore:ada', ahead(150)],
        ['ada', ahead(150)],
        [`semaphore:${OURS}`, ahead(200)],
      ),
      '{r:k}:fence': string('9'),
    },
    {
      ...{ kind: 'semaphore', format: 'shared', owner: OURS, remaining: 200, permits: null, fencingToken: null },
      ...{ waiting: 0, isWaitingExact: true, types: [], typeName: '', queue: null },
      holders: [
        { owner: OURS, remaining: 200 },
        { owner: `kept@${OTHER}`, remaining: 100, holder: 'web-2', isKept: true },
      ],
    },
  ],
  [
    'a semaphore that is waited for',
    {
      'r:k': zset([`semaphore:${OURS}`, ahead(200)]),
      '{r:k}:waiters': hash({
        permits: `5:${ahead(-9)}`,
        [`semaphore:${OURS}`]: ticket(50),
        [`semaphore:${OTHER}`]: ticket(70),
        'semaphore:ada': ticket(70),
        [`other:${OTHER}`]: ticket(70),
        [`semaphore:web-3:${ID}:1`]: ticket(70, 0),
      }),
    },
    {
      ...{ permits: 5, waiting: 2 },
      queue: [
        { position: 1, waiter: 'web-2', owner: OTHER, kind: 'semaphore', waitingFor: 70 },
        { position: 2, waiter: 'web-1', owner: OURS, kind: 'semaphore', waitingFor: 50 },
      ],
    },
  ],
  [
    'readers',
    { 'r:k': zset([`read:${OURS}`, ahead(200)]), '{r:k}:fence': string('9') },
    { kind: 'read', fencingToken: null },
  ],
  [
    'a writer, before a reader that comes first',
    {
      'r:k': zset([`write:${OURS}`, ahead(200)]),
      '{r:k}:fence': string('9'),
      '{r:k}:waiters': hash({ [`write:${OURS}`]: ticket(9), [`read:${OTHER}`]: `0:${ahead(9)}:1:1` }),
    },
    {
      ...{ kind: 'write', fencingToken: 9, permits: null },
      queue: [
        { waiter: 'web-2', kind: 'read', waitingFor: null },
        { waiter: 'web-1', kind: 'write', waitingFor: 9 },
      ],
    },
  ],
])('A shared lock is found with all that have it, and all that wait: %s', async (_, data, expected) => {
  expect(await found(data)).toMatchObject([{ lock: 'r:k', ...expected }]);
});

const waiting = (...queue: object[]) => ({ holder: null, owner: null, remaining: 0, isSure: true, queue });

it.each<[string, Data, expected: object | undefined]>([
  [
    'fair',
    {
      '{r:k}:queue': zset([`dead:${ID}:1`, 1], [OTHER, (NOW - 40) * 1_000], ['ada', 7], [OURS, (NOW - 20) * 1_000]),
      '{r:k}:tickets': hash({ [`dead:${ID}`]: `${NOW - 1}:1:m`, [`web-2:${ID}`]: `${NOW}:1:m` }),
    },
    {
      ...{ format: 'spring', type: 'fair' },
      ...waiting({ waiter: 'web-2', kind: 'lock', waitingFor: 40 }, { waiter: 'web-1', waitingFor: 20 }),
    },
  ],
  ['fair, of others', { '{r:k}:queue': zset(['ada', 7]) }, undefined],
  [
    'redisson-fair',
    { 'redisson_lock_queue:{r:k}': list(`${JAVA}:9`, 'ada', OURS) },
    {
      ...{ format: 'redisson', type: 'redisson-fair' },
      ...waiting({ waiter: `${JAVA}:9`, waitingFor: null }, { waiter: 'web-1' }),
    },
  ],
  [
    'shared',
    { '{r:k}:waiters': hash({ permits: '4:1', [`semaphore:${OURS}`]: ticket(9) }) },
    { format: 'shared', kind: 'semaphore', permits: 4, ...waiting({ waiter: 'web-1', kind: 'semaphore' }) },
  ],
  ['shared, of others', { '{r:k}:waiters': hash({ 'read:ada': ticket(9), x: 'y' }) }, undefined],
  ['a key of another type', { 'r:k': list('x'), '{r:k}:queue': zset([OURS, 1]) }, undefined],
])('A lock that nobody holds is found while somebody waits for it: %s', async (_, data, expected) => {
  const locks = await found(data);
  expect(locks).toMatchObject(expected === undefined ? [] : [{ lock: 'r:k', ...expected }]);
  expect(locks).toHaveLength(expected === undefined ? 0 : 1);
  expect(await found(data, { key: 'r:k' })).toHaveLength(locks.length);
});

it.each(['Map', 'lists', 'pairs', 'object'])('Clients answer with pairs in several ways: %s', async (way) => {
  const entries = Object.entries({ permits: '4:1', [`semaphore:${OURS}`]: ticket(9) });
  const answers = {
    Map: new Map(entries),
    lists: entries,
    pairs: entries.map(([key, value]) => ({ key, value })),
    object: Object.fromEntries(entries),
  };
  server.answers = { ...server.answers, 'HGETALL {r:k}:waiters': answers[way as keyof typeof answers] };
  expect(await found({ '{r:k}:waiters': hash({}) })).toMatchObject([{ permits: 4, waiting: 1 }]);
  server.answers = { ...server.answers, 'HGETALL {r:k}:waiters': null };
  expect(await found({ '{r:k}:waiters': hash({}) })).toEqual([]);
});

const MANY: Data = {
  ...{ 'r:k': string(OURS), 'r:k*': string(OURS), 'r:kk': string(OURS), 'x:k': string(OURS), k: string(OURS) },
  ...{ 'x:y:k': OF_OURS, 'r:s': zset([`read:${OURS}`, ahead(9)]) },
};

it.each<[Search, names: string[], keys: number]>([
  [{}, ['k', 'r:k', 'r:k*', 'r:kk', 'r:s', 'x:k', 'x:y:k'], 7],
  [{ registryKey: 'r' }, ['r:k', 'r:k*', 'r:kk', 'r:s'], 4],
  [{ registryKey: 'x', match: 'y*' }, ['x:y:k'], 1],
  [{ registryKey: 'r', key: 'k' }, ['r:k'], 1],
  [{ registryKey: 'r', key: 'none' }, [], 1],
  [{ registryKey: '', key: 'k' }, ['k'], 1],
  [{ key: 'k' }, ['k'], 1],
  [{ key: 'y:k' }, ['x:y:k'], 2],
  [{ key: 'k*' }, ['r:k*'], 2],
  [{ match: '*:k' }, ['r:k', 'x:k', 'x:y:k'], 3],
  [{ type: 'redisson' }, ['r:s', 'x:y:k'], 7],
  [{ type: 'spin', registryKey: 'x' }, ['x:k'], 2],
  [{ names: ['k', 'x:k', 'none', '{a}:queue'] }, ['k', 'x:k'], 4],
])('A look finds what is looked for, and says how many keys that took: %j', async (search, names, keys) => {
  const { locks, ...rest } = await find(MANY, search);
  expect(locks.map(({ lock }) => lock)).toEqual(names);
  expect(rest).toEqual({ searched: ['h:1'], missing: [], obstacles: [], keys, steps: expect.any(Number) });
});

it('A look asks for no key of a lock whose braces leave it none', async () => {
  expect(await found({ '{}k': string(OURS) })).toMatchObject([{ lock: '{}k', queue: null, fencingToken: null }]);
  expect(server.sent.filter((text) => /^(GET|ZRANGE) /.test(text))).toEqual([]);
  expect(server.sent).toContain('GETRANGE {}k 0 255');
});

it.each<[Key | undefined, asked: string[]]>([
  [string(OURS), ['GETRANGE r:k 0 255', 'PTTL r:k', 'GET {r:k}:fence', 'ZRANGE {r:k}:queue 0 -1 WITHSCORES']],
  [string('secret'), ['GETRANGE r:k 0 255']],
  [
    OF_OURS,
    ['HLEN r:k', 'HKEYS r:k', 'PTTL r:k', 'GET redisson_lock_token:{r:k}', 'LRANGE redisson_lock_queue:{r:k} 0 -1'],
  ],
  [hash({}), ['HLEN r:k']],
  [zset(['ada', 1]), ['ZRANGE r:k 0 0']],
  [
    zset([`write:${OURS}`, ahead(9)]),
    ['ZRANGE r:k 0 0', 'ZRANGE r:k 0 -1 WITHSCORES', 'HGETALL {r:k}:waiters', 'GET {r:k}:fence'],
  ],
  [list(), []],
])('A look asks no more of a key than it has to: %j', async (key, questions) => {
  await found(key === undefined ? {} : { 'r:k': key }, { registryKey: undefined, names: ['r:k'] });
  const types = server.sent.filter((text) => text === 'TYPE r:k').length;
  const others = server.sent.filter((text) => !/^(TYPE|TIME|PUBSUB)/.test(text));
  expect([others, types > 0]).toEqual([questions, true]);
});

it('A look says once what was refused, and nothing of a key that became something else or went elsewhere', async () => {
  server.answers = {
    ...server.answers,
    'PTTL r:b': new Error('NOPERM no'),
    'PTTL r:c': new Error('NOPERM no'),
    'GETRANGE r:d': new Error('NOPERM no'),
    'HKEYS r:e': new Error('NOPERM no'),
    'GET {r:k': new Error('WRONGTYPE Operation against a key'),
    'ZRANGE {r:k': new Error('MOVED 1 h:2'),
  };
  const { locks, missing, searched } = await find({
    ...{ 'r:b': string(OURS), 'r:c': string(OURS), 'r:d': string(OURS), 'r:e': OF_OURS },
    'r:k': string(OURS),
  });
  expect(locks.map(({ lock }) => lock)).toEqual(['r:k']);
  expect([missing, searched]).toEqual([['h:1 could not be asked about everything: NOPERM no'], ['h:1']]);
});

it('A look says what a script did not see', async () => {
  server.answers = { EVAL: ['0', 3, 'NOPERM some', 'r:k', 'string', '{r:l}:queue', 'zset'] };
  const data = { 'r:k': string(OURS), '{r:l}:queue': zset([OURS, 1]) };
  const { locks, missing, keys } = await find(data);
  expect(locks.map(({ lock }) => lock)).toEqual(['r:k', 'r:l']);
  expect([missing, keys]).toEqual([['h:1 could not be asked about everything: NOPERM some'], 3]);
  server.answers = { EVAL: ['0', 3, '', 'r:k', 'string'] };
  expect((await find(data)).missing).toEqual([]);
});

it('A look says that a server does not answer', async () => {
  server.answers = { TIME: new Error('Socket closed') };
  const cut = {
    locks: [],
    obstacles: [],
    keys: 0,
    steps: 0,
    searched: [],
    missing: ['h:1 could not be asked: Socket closed'],
  };
  expect(await find({ 'r:k': string(OURS) })).toEqual(cut);
  server.answers = { TYPE: new Error('Socket closed') };
  expect(await find({}, { key: 'k' })).toMatchObject({ ...cut, keys: 1 });
  server.answers = { TIME: () => new Promise(() => undefined) };
  const missing = ['h:1 could not be asked: Redis did not answer within 5000 ms'];
  expect(await time.settled(find({}))).toMatchObject({ after: 5_000, value: { missing } });
});

/** A cluster of two servers. */
const clusterOf = (first: Data, second: Data) => {
  const servers = [new FakeServer(first), new FakeServer(second)];
  const masters = servers.map((one, i) => ({ host: 'h', port: i + 1, client: { sendCommand: one.send } }));
  const slots = Array.from({ length: 16_384 }, (_, slot) => ({ master: masters[slot % 2] }));
  const nodeClient = (node: { client: object }) => ({ ...mockRedis(), ...node.client });
  return { servers, client: { ...mockRedis(), slots, masters, nodeClient } as never };
};

it('A look at a cluster asks all servers, and says each lock once', async () => {
  const lock = { 'r:k': string(OURS) };
  const { client, servers } = clusterOf({ ...lock, 'r:a': string(JAVA) }, { ...lock, k: string(OURS) });
  const [one, other] = servers as [FakeServer, FakeServer];
  one.channels = { 'r-channel:r:a': 2, 'redisson_lock__channel:{r:k}': 1 };
  other.channels = { 'r-channel:r:a': 1 };
  other.sharded = { 'redisson_lock__channel:{r:s}': 4 };
  one.data['r:s'] = OF_OURS;
  const { locks, searched, keys } = await findLocks(client);
  const waiters = locks.map(({ lock: name, waiting: count }) => `${name} ${count}`);
  expect(waiters).toEqual(['k null', 'r:a 3', 'r:k null', 'r:s 4']);
  expect([searched, keys]).toEqual([['h:1', 'h:2'], 5]);
  // The lock of just this name comes before those that end like it.
  expect((await findLocks(client, { key: 'k' })).locks.map(({ lock: name }) => name)).toEqual(['k']);
  other.answers = { ...other.answers, 'PUBSUB CHANNELS': new Error('NOPERM no') };
  expect((await findLocks(client, { key: 'r:a' })).locks[0]).toMatchObject({ waiting: null, registryKey: 'r' });
});

/** As CLUSTER SLOTS answers: the masters with these ids have a part of the slots each. */
const slotsOf = (...ids: string[]) => ids.map((id, i) => [i * 100, i * 100 + 99, ['h', 1, id, []]]);

it('A look at a cluster looks again when slots have moved meanwhile, and says so when they move all the time', async () => {
  const { client, servers } = clusterOf({}, {});
  const [source, target] = servers as [FakeServer, FakeServer];
  let isMoved = false;
  let scans = 0;
  // The source hands all its keys over when the target was asked for them, and before it is asked itself.
  source.answers = {
    'CLUSTER SLOTS': () => slotsOf(isMoved ? 'two' : 'one', 'two'),
    EVAL: () => {
      if (!isMoved) target.data = { 'r:k': string(OURS) };
      isMoved = true;
      return ['0', 1, ''];
    },
  };
  target.answers = {
    'CLUSTER SLOTS': () => slotsOf(isMoved ? 'two' : 'one', 'two'),
    EVAL: () => ['0', 1, '', ...(scans++ > 0 ? ['r:k', 'string'] : [])],
  };
  const { locks, missing } = await findLocks(client);
  expect([locks.map(({ lock }) => lock), missing, scans]).toEqual([['r:k'], [], 2]);
  let moves = 0;
  source.answers = { ...source.answers, 'CLUSTER SLOTS': () => slotsOf(`id-${moves++}`, 'two') };
  expect((await findLocks(client)).missing).toEqual(['Slots of the cluster moved while it was looked at']);
  expect(scans).toBe(5);
});

it('A look at a cluster says that its client does not know all masters', async () => {
  const { client, servers } = clusterOf({}, {});
  for (const one of servers) one.answers = { ...one.answers, 'CLUSTER SLOTS': slotsOf('one', 'two', 'new') };
  expect((await findLocks(client)).missing).toEqual(['The client does not know 1 of the masters of the cluster']);
  for (const one of servers) one.answers = { ...one.answers, 'CLUSTER SLOTS': new Error('NOPERM no') };
  expect((await findLocks(client)).missing).toEqual([]);
});

it.each([
  [10_000, 5, 0, true],
  [10_001, 5, 99, false],
  [10_001, 5, 100, true],
])(
  'Looks that are repeated search again, unless that costs much: %d keys, which took %d ms, %d ms ago',
  async (keys, ms, later, isSearch) => {
    server.data = { 'r:k': string(OURS) };
    server.answers = {
      EVAL: () => {
        time.now += ms;
        return ['0', keys, '', 'r:k', 'string'];
      },
    };
    const next = finderOf(clientOf(), {});
    const count = () => server.sent.filter((text) => text.startsWith('EVAL')).length;
    await next();
    const first = count();
    time.now += later;
    expect((await next()).locks.map(({ lock }) => lock)).toEqual(['r:k']);
    expect([first, count()]).toEqual([1, isSearch ? 2 : 1]);
    server.data = {};
    if (!isSearch) expect(await next()).toMatchObject({ locks: [], keys: 1 });
  },
);

it('Looks after a search that saw only a part see only a part too, until the next search', async () => {
  const { client, servers } = clusterOf({ a: string(OURS) }, { b: string(OURS) });
  const [one, other] = servers as [FakeServer, FakeServer];
  one.answers = {
    EVAL: () => {
      time.now += 5;
      return ['0', 10_001, '', 'a', 'string'];
    },
  };
  const next = finderOf(client, {});
  const seen = async () => {
    const { locks, missing } = await next();
    return [locks.map(({ lock }) => lock), missing];
  };
  expect(await seen()).toEqual([['a', 'b'], []]);
  time.now += 1_000;
  other.answers = { ...other.answers, TIME: new Error('Socket closed') };
  const cut = ['h:2 could not be asked: Socket closed'];
  expect(await seen()).toEqual([['a'], cut]);
  expect(await seen()).toEqual([['a'], cut]);
  delete other.answers.TIME;
  expect(await seen()).toEqual([['a'], cut]);
  time.now += 1_000;
  expect(await seen()).toEqual([['a', 'b'], []]);
});

it('A key that a server lists, and says that another one has, is not taken for free', async () => {
  server.answers = { ...server.answers, 'GETRANGE r:k': new Error('MOVED 1 h:2') };
  const { locks, missing } = await find({ 'r:k': string(OURS), 'r:l': string(OURS) });
  expect(locks.map(({ lock }) => lock)).toEqual(['r:l']);
  const moving = ['h:1 could not be asked about everything: a slot of the cluster is moving'];
  expect(missing).toEqual(moving);
  server.answers = { ...server.answers, 'TYPE r:k': new Error('ASK 1 h:2') };
  expect(await find({}, { key: 'r:k' })).toMatchObject({ locks: [], missing: moving });
  // A name is asked for at every server.
  server.answers = { ...server.answers, 'TYPE r:k': new Error('MOVED 1 h:2') };
  expect(await find({}, { key: 'r:k' })).toMatchObject({ locks: [], missing: [] });
});

it.each<[string, Partial<FoundLock>, keys: string[], channel: string]>([
  ['both parts', { registryKey: 'a:b', key: 'c' }, ['a:b:c'], 'a:b-channel'],
  ['no registryKey', { registryKey: null, key: null, lock: 'ab:b:c' }, ['ab:b:c'], 'ab-channel'],
  ['no part before a colon', { registryKey: null, key: null, lock: ':a:b' }, [':a:b'], '-channel'],
  ['no colon', { registryKey: null, key: null, lock: 'b\nc' }, ['b\nc'], '-channel'],
  ['a part with a line break', { registryKey: null, key: null, lock: 'a:b\nc' }, ['a:b\nc'], 'a-channel'],
])('A lock that was found is released by force: of which is known %s', async (_, known, keys, channel) => {
  const redis = mockRedis();
  redis.evalSha.mockResolvedValueOnce([OURS, 9, '', -1]).mockResolvedValueOnce([1, 0]);
  const lock = { lock: 'a:b:c', format: 'spring', type: null, ...known } as FoundLock;
  expect(await forceUnlock(redis as never, lock)).toMatchObject({ held: true, told: false });
  const mark = expect.stringContaining('}:evals:forced:');
  expect(redis.calls.map((call) => call?.keys)).toEqual([keys, [...keys, mark]]);
  expect(redis.calls[1]?.arguments).toContain(channel);
});

it.each<[Partial<FoundLock>, queue: string]>([
  [{ format: 'redisson', type: null }, 'redisson_lock__channel:{a:b}'],
  [{ format: 'redisson', type: 'redisson-fair' }, 'redisson_lock_queue:{a:b}'],
  [{ format: 'spring', type: 'fair' }, '{a:b}:queue'],
])('A lock is released by force as its type is: %j', async (known, name) => {
  const redis = mockRedis();
  redis.evalSha.mockResolvedValueOnce([OURS, 9, '', -1]).mockResolvedValueOnce([1, 0]);
  await forceUnlock(redis as never, { lock: 'a:b', registryKey: 'a', key: 'b', ...known } as FoundLock);
  const call = redis.calls[1];
  expect([...(call?.keys ?? []), ...(call?.arguments ?? [])]).toContain(name);
  expect(
    await forceUnlock(redis.evalSha.mockResolvedValue(['', 0, '', -1]) && (redis as never), {
      ...{ lock: 'a:b', registryKey: 'a', key: 'b', ...known },
    } as FoundLock),
  ).toMatchObject({ held: false });
});
