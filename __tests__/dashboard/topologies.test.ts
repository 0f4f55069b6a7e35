import { expect, it } from '@jest/globals';
import { dashboard } from '../../lib/dashboard';
import { startCluster } from '../support/cluster';
import type { Node } from '../support/node';
import { atTheEnd, describePrivate } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TOKEN = 'a-token-for-the-tests-of-the-page';
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];

interface View {
  readonly problem: string | null;
  readonly missing: readonly string[];
  readonly searched: readonly string[];
  readonly rows: readonly { readonly lock: string; readonly owner: string }[];
}

const addressOf = ({ address }: Node) => `${address.host}:${address.port}`;

describePrivate('The page', () => {
  it('shows and unlocks the locks of all masters of a cluster, and shows a part of them when one is away', async () => {
    const cluster = await startCluster({ args: ['--cluster-require-full-coverage', 'no'] });
    atTheEnd(() => cluster.stop());
    const { registry, nameOf } = createRegistry(await cluster.connect());
    const registryKey = nameOf('').slice(0, -1);
    const other = createRegistry(await cluster.connect(), { registryKey }).registry;
    for (const key of KEYS) await registry.obtain(key).lock({ ttl: 600_000 });
    const page = dashboard(await cluster.connect(), { token: TOKEN, registryKey, actions: true, onAction: () => {} });
    atTheEnd(() => page[Symbol.dispose]());
    const ask = (query: Record<string, string>, method = 'GET') => {
      const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
      return page(new Request(`http://127.0.0.1/?${new URLSearchParams(query)}`, { method, headers }));
    };
    const view = async () => (await (await ask({ view: 'locks' })).json()) as View;

    const whole = await view();
    const names = KEYS.map(nameOf);
    expect([whole.problem, whole.missing, whole.rows.map(({ lock }) => lock)]).toEqual([null, [], names]);
    expect([...whole.searched].sort()).toEqual(cluster.masters.map(addressOf).sort());
    for (const { lock, owner } of whole.rows) {
      expect((await ask({ act: 'unlock', lock, owner }, 'POST')).status).toBe(200);
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
});
