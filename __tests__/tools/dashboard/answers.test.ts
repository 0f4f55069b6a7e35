import { expect, it, jest } from '@jest/globals';
import { clock } from '../../../lib/internal/clock';
import type { DashboardOptions } from '../../../lib/tools/dashboard';
import { describePrivate } from '../../support/private-redis';
import { ADDRESS, skip, TestedPage, TOKEN } from './tested-page';

describePrivate('The page answers', () => {
  const tested = new TestedPage();

  it('the page to everybody, without anything of the locks in it', async () => {
    const { lock } = await tested.held('secret');
    const response = await tested.page(new Request(ADDRESS));
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
    const policy = (await tested.page(new Request(ADDRESS))).headers.get('content-security-policy') ?? '';
    const directives = policy.split('; ').map((one) => one.replace(/'sha256-[\w+/=]{44}'/, 'HASH'));
    expect(directives).toEqual([
      ...["default-src 'none'", 'script-src HASH', 'style-src HASH', "connect-src 'self'", 'img-src data:'],
      ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
      ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
    ]);
    const { headers } = await tested.ask({ view: 'locks' });
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'");
    const others = ['x-content-type-options', 'cache-control', 'referrer-policy'].map((name) => headers.get(name));
    expect(others).toEqual(['nosniff', 'no-store', 'no-referrer']);
  });

  it.each([
    ['without the token', { authorization: '' }],
    ['with another token', { authorization: 'Bearer another-token-of-some-length' }],
    ['with a part of it', { authorization: `Bearer ${TOKEN.slice(0, -1)}` }],
  ])('401 to who asks for the locks, or acts, %s', async (_, headers) => {
    tested.create({ actions: true });
    const { owner, lease, lock } = await tested.held('key');
    expect((await tested.ask({ view: 'locks' }, headers)).status).toBe(401);
    expect((await tested.unlock(lock, owner, headers)).status).toBe(401);
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
    tested.create({ actions: true, token: undefined, authorize: () => true });
    const { owner, lease, lock } = await tested.held('key');
    expect((await tested.ask({ view: 'locks' }, headers)).status).toBe(403);
    expect((await tested.unlock(lock, owner, headers)).status).toBe(403);
    expect(tested.actions).toEqual([]);
    lease.assertHeld();
  });

  it('requests of its own origin, and of programs that are no browsers', async () => {
    const own = [{ 'sec-fetch-site': 'same-origin' }, { origin: 'http://127.0.0.1:5000' }, {}];
    // Behind a proxy the browser knows another host than the server.
    const proxied = { origin: 'https://locks.example', host: 'locks.example' };
    for (const headers of [...own, proxied]) expect((await tested.ask({ view: 'locks' }, headers)).status).toBe(200);
  });

  it('405 to other methods, and 415 to an action that a form could send', async () => {
    tested.create({ actions: true });
    const { owner, lock } = await tested.held('key');
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD']) {
      expect((await tested.ask({ view: 'locks' }, {}, method)).status).toBe(405);
    }
    expect((await tested.ask({ act: 'unlock', lock, owner })).status).toBe(405);
    expect((await tested.unlock(lock, owner, { 'content-type': 'text/plain' })).status).toBe(415);
    expect(tested.actions).toEqual([]);
  });

  it('as `authorize` says, for the page too', async () => {
    tested.create({ token: undefined, authorize: async ({ headers }) => headers.get('cookie') === 'user=admin' });
    expect((await tested.page(new Request(ADDRESS))).status).toBe(401);
    expect((await tested.page(new Request(ADDRESS, { headers: { cookie: 'user=admin' } }))).status).toBe(200);
    expect((await tested.ask({ view: 'locks' })).status).toBe(401);
    expect((await tested.ask({ view: 'locks' }, { cookie: 'user=admin' })).status).toBe(200);
  });

  it.each([
    ['rejects', () => Promise.reject(new Error('postgres://app:hunter2@10.0.0.5'))],
    [
      'throws',
      () => {
        throw new Error('postgres://app:hunter2@10.0.0.5');
      },
    ],
  ])('500 when `authorize` %s, and says why on stderr only', async (_how, authorize) => {
    tested.create({ token: undefined, authorize });
    const written = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    const response = await tested.ask({ view: 'locks' });
    const lines = written.mock.calls.map(([text]) => String(text));
    written.mockRestore();
    expect([response.status, await response.text()]).toEqual([500, expect.not.stringContaining('hunter2')]);
    expect(lines).toEqual([expect.stringMatching(/^\S+Z redis-lock-registry: .*hunter2@10\.0\.0\.5"\n$/)]);
  });

  it.each([[{ allowed: false }], [new Response('no', { status: 401 })], ['no'], [1], [undefined]])(
    '401 where `authorize` returns %j, and not true',
    async (answer) => {
      tested.create({
        token: undefined,
        actions: true,
        authorize: (() => answer) as unknown as DashboardOptions['authorize'],
      });
      const { owner, lease, lock } = await tested.held('key');
      for (const response of [tested.ask({ view: 'locks' }), tested.unlock(lock, owner)]) {
        expect((await response).status).toBe(401);
      }
      lease.assertHeld();
    },
  );

  it('400 to an action that there is not', async () => {
    tested.create({ actions: true });
    const { owner, lease, lock } = await tested.held('key');
    for (const act of ['dry-run', '', 'UNLOCK']) {
      const headers = { 'content-type': 'application/json' };
      expect((await tested.ask({ act, lock, owner }, headers, 'POST')).status).toBe(400);
    }
    await lease.renew();
  });

  it('a wrong token after a pause that grows, to 10 s, and is forgotten after a minute; others are not kept waiting', async () => {
    const pauses: number[] = [];
    const timer = jest.spyOn(clock, 'setTimeout').mockImplementation((callback, ms) => {
      pauses.push(ms);
      return setTimeout(callback, 0);
    });
    const wrong = async () => {
      pauses.length = 0;
      const { status } = await tested.ask({ view: 'locks' }, { authorization: 'Bearer a-token-that-is-not-the-one' });
      return [status, ...pauses];
    };
    try {
      expect([await wrong(), await wrong(), await wrong()]).toEqual([
        [401, 100],
        [401, 200],
        [401, 400],
      ]);
      for (let i = 0; i < 10; i++) await wrong();
      expect(await wrong()).toEqual([401, 10_000]);
      pauses.length = 0;
      // The page before it has a token, and who has the right one.
      expect((await tested.ask({ view: 'locks' }, { authorization: '' })).status).toBe(401);
      expect((await tested.page(new Request(ADDRESS))).status).toBe(200);
      expect(pauses).toEqual([]);
      skip(61_000);
      expect([await wrong(), await wrong()]).toEqual([
        [401, 100],
        [401, 200],
      ]);
    } finally {
      timer.mockRestore();
    }
    expect((await tested.ask({ view: 'locks' })).status).toBe(200);
  });
});
