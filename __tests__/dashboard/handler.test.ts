import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockLostError, type RedisClient } from '../../lib';
import { type Dashboard, type DashboardAction, type DashboardOptions, dashboard } from '../../lib/dashboard';
import { clock } from '../../lib/internal/clock';
import { startCluster } from '../support/cluster';
import type { Node } from '../support/node';
import { atTheEnd, describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TOKEN = 'a-token-for-the-tests-of-the-page';
const URL = 'http://127.0.0.1:5000/locks';

interface ShownLock {
  readonly lock: string;
  readonly owner: string;
  readonly holder: string | null;
  readonly heldFor: number | null;
  readonly isHere: boolean;
  readonly renewed: boolean | null;
}

interface View {
  readonly problem: string | null;
  readonly missing: readonly string[];
  readonly searched: readonly string[];
  readonly matched: number;
  readonly from: number;
  readonly actions: boolean;
  readonly counts: { readonly held: number; readonly waiting: number; readonly kept: number };
  readonly rows: readonly ShownLock[];
  readonly selected: (ShownLock & { readonly waitingHere: number; readonly queue: readonly unknown[] | null }) | null;
  readonly changes: readonly {
    readonly lock: string;
    readonly what: string;
    readonly by: string | null;
    reason?: string;
  }[];
  readonly hot: readonly { readonly lock: string; readonly calls: number }[];
  readonly waits: readonly { readonly lock: string; readonly waitsFor: string }[];
}

/** ms by which the clock of the library is ahead: a test need not wait until the page looks at Redis again. */
let ahead = 0;
const { now } = clock;
clock.now = () => now() + ahead;

describePrivate('The handler of the page', () => {
  const redis = PrivateRedis.install();
  let client: TestClient;
  let page: Dashboard;
  let actions: DashboardAction[];

  const create = (options: Partial<DashboardOptions> = {}, of: RedisClient = client) => {
    page?.[Symbol.dispose]();
    actions = [];
    page = dashboard(of, { token: TOKEN, onAction: (action) => void actions.push(action), ...options });
  };
  const ask = (query: Record<string, string>, headers: Record<string, string> = {}, method = 'GET') => {
    const address = `${URL}?${new URLSearchParams(query)}`;
    return page(new Request(address, { method, headers: { authorization: `Bearer ${TOKEN}`, ...headers } }));
  };
  const view = async (query: Record<string, string> = {}) => {
    const response = await ask({ view: 'locks', ...query });
    expect(response.status).toBe(200);
    return (await response.json()) as View;
  };
  const unlock = (lock: string, owner: string, headers: Record<string, string> = {}) =>
    ask({ act: 'unlock', lock, owner }, { 'content-type': 'application/json', ...headers }, 'POST');

  beforeEach(async () => {
    client = await redis.connect();
    create();
  });

  afterEach(() => page[Symbol.dispose]());

  const held = async (key: string, options = {}) => {
    const created = createRegistry(await redis.connect(), { lockType: 'fair', name: 'web-7', ...options });
    const lease = await created.registry.obtain(key).lock();
    const { owner = '' } = await created.registry.obtain(key).inspect();
    return { ...created, lease, owner, lock: created.nameOf(key) };
  };

  describe('answers', () => {
    it('the page to everybody, without anything of the locks in it', async () => {
      const { lock } = await held('secret');
      const response = await page(new Request(URL));
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(response.headers.get('cache-control')).toBe('no-store');
      const html = await response.text();
      expect(html).not.toContain(lock);
      expect(html).not.toContain(TOKEN);
      expect(html).not.toMatch(/ (?:src|href)="(?!#|data:,)/);
      expect(html).not.toMatch(/innerHTML|insertAdjacentHTML|document\.write|\beval\(/);
    });

    it('with a policy that lets nothing run but what is in the page', async () => {
      const policy = (await page(new Request(URL))).headers.get('content-security-policy') ?? '';
      const directives = policy.split('; ').map((one) => one.replace(/'sha256-[\w+/=]{44}'/, 'HASH'));
      expect(directives).toEqual([
        ...["default-src 'none'", 'script-src HASH', 'style-src HASH', "connect-src 'self'", 'img-src data:'],
        ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
        ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
      ]);
      expect((await ask({ view: 'locks' })).headers.get('x-content-type-options')).toBe('nosniff');
    });

    it.each([
      ['without the token', { authorization: '' }],
      ['with another token', { authorization: 'Bearer another-token-of-some-length' }],
      ['with a part of it', { authorization: `Bearer ${TOKEN.slice(0, -1)}` }],
    ])('401 to who asks for the locks, or acts, %s', async (_, headers) => {
      create({ actions: true });
      const { owner, lease, lock } = await held('key');
      expect((await ask({ view: 'locks' }, headers)).status).toBe(401);
      expect((await unlock(lock, owner, headers)).status).toBe(401);
      lease.assertHeld();
    });

    it.each([
      [{ 'sec-fetch-site': 'cross-site' }],
      [{ 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:5000' }],
      [{ 'sec-fetch-site': 'none' }],
      [{ origin: 'http://evil.example' }],
      [{ origin: 'http://127.0.0.1:5001' }],
      [{ origin: 'null' }],
    ])('403 to a request of another origin: %j', async (headers) => {
      create({ actions: true, token: undefined, authorize: () => true });
      const { owner, lease, lock } = await held('key');
      expect((await ask({ view: 'locks' }, headers)).status).toBe(403);
      expect((await unlock(lock, owner, headers)).status).toBe(403);
      expect(actions).toEqual([]);
      lease.assertHeld();
    });

    it('requests of its own origin, and of programs that are no browsers', async () => {
      const own = [{ 'sec-fetch-site': 'same-origin' }, { origin: 'http://127.0.0.1:5000' }, {}];
      // Behind a proxy the browser knows another host than the server.
      const proxied = { origin: 'https://locks.example', host: 'locks.example' };
      for (const headers of [...own, proxied]) expect((await ask({ view: 'locks' }, headers)).status).toBe(200);
    });

    it('405 to other methods, and 415 to an action that a form could send', async () => {
      create({ actions: true });
      const { owner, lock } = await held('key');
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD']) {
        expect((await ask({ view: 'locks' }, {}, method)).status).toBe(405);
      }
      expect((await ask({ act: 'unlock', lock, owner })).status).toBe(405);
      expect((await unlock(lock, owner, { 'content-type': 'text/plain' })).status).toBe(415);
      expect(actions).toEqual([]);
    });

    it('as `authorize` says, for the page too', async () => {
      create({ token: undefined, authorize: async ({ headers }) => headers.get('cookie') === 'user=admin' });
      expect((await page(new Request(URL))).status).toBe(401);
      expect((await page(new Request(URL, { headers: { cookie: 'user=admin' } }))).status).toBe(200);
      expect((await ask({ view: 'locks' })).status).toBe(401);
      expect((await ask({ view: 'locks' }, { cookie: 'user=admin' })).status).toBe(200);
    });

    it('500 when `authorize` throws', async () => {
      create({ token: undefined, authorize: () => Promise.reject(new Error('no users')) });
      expect((await ask({ view: 'locks' })).status).toBe(500);
    });
  });

  describe('shows', () => {
    it('what other processes hold, and what this one knows better', async () => {
      const { lease, lock, registry } = await held('key', { expireAfter: 900 });
      const waiting = registry.obtain('key').lock();
      await until(async () => (await view({ lock })).selected?.renewed === true);
      const { selected, rows, counts, waits } = await view({ lock });
      expect(selected).toMatchObject({ lock, holder: 'web-7', isHere: true, renewed: true, waitingHere: 1 });
      expect(selected?.heldFor).toBeGreaterThan(0);
      expect(rows.find((row) => row.lock === lock)).toMatchObject({ holder: 'web-7' });
      expect(counts.held).toBeGreaterThan(0);
      expect(waits).toContainEqual(expect.objectContaining({ lock, waitsFor: 'this process' }));
      await lease.unlock();
      await (await waiting).unlock();
      expect((await view({ lock: 'no:lock' })).selected).toBeNull();
    });

    it('what changed: acquired, handed over, lost, forced; and which keys are called most', async () => {
      create({ actions: true });
      const { lease, lock, owner, registry } = await held('key', { lockType: 'pub-sub' });
      const second = registry.obtain('key').lock();
      await lease.unlock();
      const next = await second;
      const { owner: now = owner } = await registry.obtain('key').inspect();
      expect((await unlock(lock, now)).status).toBe(200);
      await expect(next.renew()).rejects.toThrow(LockLostError);
      const { changes, hot } = await view();
      const seen = changes.filter((change) => change.lock === lock).map(({ what, by }) => `${what} ${by}`);
      expect([...seen].sort()).toEqual(['acquired web-7', 'forced web-7', 'handed over web-7', 'lost web-7']);
      expect(changes.find(({ what }) => what === 'lost')).toMatchObject({ reason: 'expired' });
      expect(hot).toContainEqual(expect.objectContaining({ lock, calls: 2 }));
    });

    it('what other processes changed, as far as Redis shows it', async () => {
      const other = await redis.connect();
      const lock = `${Math.random()}:by-another`;
      const owner = `web-9:${'x'.repeat(22)}:1`;
      await view();
      await other.set(lock, owner, { PX: 60_000 });
      ahead += 1_000;
      await until(async () => (await view()).changes.some((change) => change.lock === lock && change.by === 'web-9'));
      await other.del(lock);
      ahead += 1_000;
      await until(async () => (await view()).changes.some((change) => change.lock === lock && change.what === 'free'));
    });

    it('a page of them: searched, sorted, and never more than a hundred', async () => {
      const registryKey = 'many';
      create({ registryKey });
      const all = Array.from({ length: 250 }, (_, i) => {
        const name = `${registryKey}:${String(i).padStart(3, '0')}`;
        return client.set(name, `web-${i % 5}:${'x'.repeat(22)}:${i}`, { PX: 600_000 - i * 1_000 });
      });
      await Promise.all(all);
      const keys = ({ rows }: View) => rows.map(({ lock }) => lock.slice(registryKey.length + 1));
      const first = await view();
      expect([first.matched, first.rows.length, keys(first)[0]]).toEqual([250, 100, '000']);
      expect(keys(await view({ from: '200' }))).toHaveLength(50);
      expect(keys(await view({ sort: 'remaining' }))[0]).toBe('249');
      expect(keys(await view({ sort: 'lock', descending: 'true' }))[0]).toBe('249');
      expect((await view({ q: 'WEB-3' })).matched).toBe(50);
      expect((await view({ q: '07' })).matched).toBe(13);
      expect((await view({ q: 'no such', from: '99', sort: 'nonsense' })).rows).toEqual([]);
    });

    it('what was known, and the problem, while Redis is away', async () => {
      const { lock } = await held('key');
      await until(async () => (await view()).rows.some((row) => row.lock === lock));
      ahead += 1_000;
      redis.freeze();
      try {
        await view();
        ahead += 4_000;
        await until(async () => (await view()).problem?.startsWith('no answer for '), { within: 30_000 });
        expect((await view()).rows.map((row) => row.lock)).toContain(lock);
      } finally {
        redis.thaw();
      }
      await until(async () => (await view()).problem === null, { within: 30_000 });
    });

    it('the problem, where the client cannot look at all', async () => {
      page[Symbol.dispose]();
      page = dashboard({ eval: async () => 1, evalSha: async () => 1 }, { token: TOKEN });
      expect((await view()).problem).toMatch(/no way to ask each server/);
    });

    it('with one look for all that ask in a second', async () => {
      const looks = async () => {
        const stats = String(await client.sendCommand(['INFO', 'commandstats']));
        return Number(/cmdstat_time:calls=(\d+)/.exec(stats)?.[1] ?? 0);
      };
      const before = await looks();
      await Promise.all(Array.from({ length: 20 }, () => view()));
      expect((await looks()) - before).toBe(1);
    });
  });

  describe('unlocks by force', () => {
    it('what is held by whom the page said, and says so with its time', async () => {
      create({ actions: true });
      const { lease, lock, owner } = await held('key');
      const response = await unlock(lock, owner);
      expect(await response.json()).toEqual({ message: `${lock} was unlocked by force; web-7 held it` });
      expect(actions).toEqual([{ at: expect.any(Date), lock, owner, holder: 'web-7', request: expect.any(Request) }]);
      await expect(lease.renew()).rejects.toThrow(LockLostError);
    });

    it('nothing that somebody else holds by now, or that is free', async () => {
      create({ actions: true });
      const { lease, lock, owner, registry } = await held('key');
      await lease.unlock();
      const free = await unlock(lock, owner);
      expect([free.status, await free.json()]).toEqual([
        409,
        { message: 'Nothing was unlocked: by now nobody holds it' },
      ]);
      const next = await registry.obtain('key').lock();
      expect((await unlock(lock, owner)).status).toBe(409);
      next.assertHeld();
      expect(actions).toEqual([]);
    });

    it('nothing without the option `actions`, and nothing of another registry', async () => {
      const { lease, lock, owner } = await held('key');
      expect((await unlock(lock, owner)).status).toBe(403);
      create({ actions: true, registryKey: 'another' });
      expect((await unlock(lock, owner)).status).toBe(409);
      lease.assertHeld();
      expect((await view()).actions).toBe(true);
    });

    it('and logs a line with its time, by default', async () => {
      create({ actions: true, onAction: undefined });
      const written = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
      const { lock, owner } = await held('line\nbreak');
      await unlock(lock, owner);
      const lines = written.mock.calls.map(([text]) => String(text));
      written.mockRestore();
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatch(
        /^\d{4}-\S+Z redis-lock-registry: lock ".*line\\nbreak" was unlocked by force; "web-7" held it\n$/,
      );
    });
  });

  it('shows and unlocks the locks of all masters of a cluster, and shows a part of them when one is away', async () => {
    const cluster = await startCluster({ args: ['--cluster-require-full-coverage', 'no'] });
    atTheEnd(() => cluster.stop());
    const { registry, nameOf, registryKey } = createRegistry(await cluster.connect());
    const other = createRegistry(await cluster.connect(), { registryKey }).registry;
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
    const names = keys.map(nameOf);
    for (const key of keys) await registry.obtain(key).lock({ ttl: 600_000 });
    create({ registryKey, actions: true }, await cluster.connect());
    const addressOf = ({ address }: Node) => `${address.host}:${address.port}`;

    const whole = await view();
    expect([whole.problem, whole.missing, whole.rows.map(({ lock }) => lock)]).toEqual([null, [], names]);
    expect([...whole.searched].sort()).toEqual(cluster.masters.map(addressOf).sort());
    for (const { lock, owner } of whole.rows) {
      expect((await unlock(lock, owner)).status).toBe(200);
      await other.obtain(lock.slice(nameOf('').length)).lock({ ttl: 600_000, waitTime: 20_000 });
    }

    const masters = await Promise.all(names.map(async (name) => (await cluster.ownersOf(name)).master));
    const [master] = masters as [Node];
    await master.kill();
    await until(async () => (await view()).missing.length > 0, { within: 60_000 });
    const { missing, problem, rows } = await view();
    expect(problem).toBeNull();
    expect(missing[0]).toContain(`${addressOf(master)} could not be asked`);
    expect(rows.map(({ lock }) => lock)).toEqual(names.filter((_, i) => masters[i] !== master));
  });

  it('listens to no channel when it has been disposed of', async () => {
    page[Symbol.dispose]();
    const { lock } = await held('key');
    expect((await view()).changes.filter((change) => change.lock === lock && change.what === 'acquired')).toEqual([]);
  });

  it.each([
    [{}, 'Expected `options` to be with either a `token` or `authorize`, got {} (object)'],
    [{ token: 7 }, 'Expected `token` to be a string, got 7 (number)'],
    [{ token: TOKEN, actions: 'yes' }, "Expected `actions` to be a boolean, got 'yes' (string)"],
    [{ token: TOKEN, action: true }, /Unknown option `action`.*did you mean `actions`/],
  ])('rejects the options %j', (options, message) => {
    expect(() => dashboard(client, options as DashboardOptions)).toThrow(message);
  });

  it('rejects a short token, and does not repeat it', () => {
    expect(() => dashboard(client, { token: 'too-short' })).toThrow(RangeError);
    expect(() => dashboard(client, { token: 'too-short' })).not.toThrow(/too-short/);
  });
});
