import { afterAll, expect, it } from '@jest/globals';
import { type RedisClient, RedisLockRegistry } from '../../lib';
import { dashboard } from '../../lib/dashboard';
import { startCluster } from '../support/cluster';
import type { Node } from '../support/node';
import { describePrivate } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { until } from '../support/until';

const TOKEN = 'a-token-for-the-tests-of-the-page';
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];
const LIMIT = { within: 60_000 };

interface View {
  readonly problem: string | null;
  readonly missing: readonly string[];
  readonly searched: readonly string[];
  readonly counts: { readonly held: number; readonly waiting: number };
  readonly rows: readonly { readonly lock: string; readonly holder: string; readonly owner: string }[];
}

const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

const addressOf = ({ address }: Node) => `${address.host}:${address.port}`;

/** The page, with locks of two processes. */
async function open(page: RedisClient, holding: RedisClient, waiting: RedisClient) {
  const registryKey = uniqueKey('page');
  const [holder, waiter] = [holding, waiting].map((client, i) => {
    const registry = new RedisLockRegistry(client, { registryKey, lockType: 'fair', name: `web-${i + 1}` });
    closing.push(() => registry.close({ timeout: 0 }));
    return registry;
  }) as [RedisLockRegistry, RedisLockRegistry];
  for (const key of KEYS) await holder.obtain(key).lock({ ttl: 600_000 });
  const next = waiter.obtain('a').lock();
  next.catch(() => undefined);
  const handler = dashboard(page, { token: TOKEN, registryKey, actions: true, onAction: () => undefined });
  closing.push(() => handler[Symbol.dispose]());
  const ask = (query: Record<string, string>, method: string) => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    return handler(new Request(`http://127.0.0.1/?${new URLSearchParams(query)}`, { method, headers }));
  };
  const view = async () => (await (await ask({ view: 'locks' }, 'GET')).json()) as View;
  const unlock = (lock: string, owner: string) => ask({ act: 'unlock', lock, owner }, 'POST');
  return { nameOf: (key: string) => `${registryKey}:${key}`, next, view, unlock };
}

describePrivate('The page', () => {
  it('shows the locks of all masters of a cluster, and a part of them when one is away', async () => {
    const cluster = await startCluster({ args: ['--cluster-require-full-coverage', 'no'] });
    closing.push(() => cluster.stop());
    const [page, holding, waiting] = [await cluster.connect(), await cluster.connect(), await cluster.connect()];
    const opened = await open(page, holding, waiting);
    const { next, nameOf, unlock, view } = opened;
    await until(async () => (await view()).counts.waiting === 1, LIMIT);
    const { counts, missing: none, problem: isFine, rows: all, searched } = await view();
    expect([isFine, none, counts.held, all.map(({ lock }) => lock)]).toEqual([...[null, [], 6], KEYS.map(nameOf)]);
    expect([...searched].sort()).toEqual(cluster.masters.map(addressOf).sort());
    const { lock = '', owner = '' } = all[0] ?? {};
    expect((await unlock(lock, owner)).status).toBe(200);
    (await next).assertHeld();
    await until(async () => (await view()).rows[0]?.holder === 'web-2', LIMIT);

    const names = KEYS.map(opened.nameOf);
    const masters = await Promise.all(names.map(async (name) => (await cluster.ownersOf(name)).master));
    const [master] = masters as [Node];
    await master.kill();
    await until(async () => (await opened.view()).missing.length > 0, LIMIT);
    const { missing, problem, rows } = await opened.view();
    expect(problem).toBeNull();
    expect(missing[0]).toContain(`${addressOf(master)} could not be asked`);
    expect(rows.map(({ lock }) => lock)).toEqual(names.filter((_, i) => masters[i] !== master));
  });
});
