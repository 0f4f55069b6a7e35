import { expect, it } from '@jest/globals';
import { type DashboardOptions, dashboard } from '../../../lib/tools/dashboard';
import { startCluster } from '../../support/cluster';
import type { Node } from '../../support/node';
import { describePrivate, untilTheEnd } from '../../support/private-redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';
import { TestedPage, TOKEN } from './tested-page';

describePrivate('The handler of the page', () => {
  const tested = new TestedPage();

  it('shows and unlocks the locks of all masters of a cluster, and shows a part of them when one is away', async () => {
    const cluster = await untilTheEnd(startCluster({ args: ['--cluster-require-full-coverage', 'no'] }));
    const { registry, nameOf, registryKey } = createRegistry(await cluster.connect());
    const other = createRegistry(await cluster.connect(), { registryKey }).registry;
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
    const names = keys.map(nameOf);
    for (const key of keys) await registry.obtain(key).lock({ ttl: 600_000 });
    tested.create({ registryKey, actions: true }, await cluster.connect());
    const addressOf = ({ address }: Node) => `${address.host}:${address.port}`;

    const whole = await tested.view();
    expect([whole.problem, whole.missing, whole.rows.map(({ lock }) => lock)]).toEqual([null, [], names]);
    expect([...whole.searched].sort()).toEqual(cluster.masters.map(addressOf).sort());
    for (const { lock, owner } of whole.rows) {
      expect((await tested.unlock(lock, owner)).status).toBe(200);
      await other.obtain(lock.slice(nameOf('').length)).lock({ ttl: 600_000, waitTime: 20_000 });
    }

    const masters = await Promise.all(names.map(async (name) => (await cluster.ownersOf(name)).master));
    const [master] = masters as [Node];
    await master.kill();
    await until(async () => (await tested.view()).missing.length > 0, { within: 60_000 });
    const { missing, problem, rows } = await tested.view();
    expect(problem).toBeNull();
    expect(missing[0]).toContain(`${addressOf(master)} could not be asked`);
    expect(rows.map(({ lock }) => lock)).toEqual(names.filter((_, i) => masters[i] !== master));
  });

  it('listens to no channel when it has been disposed of', async () => {
    tested.page[Symbol.dispose]();
    const { lock } = await tested.held('key');
    expect(
      (await tested.view()).changes.filter((change) => change.lock === lock && change.what === 'acquired'),
    ).toEqual([]);
  });

  it.each([
    [{}, 'Expected `options` to be with either a `token` or `authorize`, got [] (object)'],
    [{ token: 7 }, 'Expected `token` to be a string, got a value of type number'],
    [{ token: TOKEN, actions: 'yes' }, "Expected `actions` to be a boolean, got 'yes' (string)"],
    [{ token: TOKEN, action: true }, /Unknown option `action`.*did you mean `actions`/],
  ])('rejects the options %j', (options, message) => {
    expect(() => dashboard(tested.client, options as DashboardOptions)).toThrow(message);
  });

  it.each([
    [
      { token: TOKEN, authorize: () => true },
      "with either a `token` or `authorize`, got [ 'token', 'authorize' ] (object)",
    ],
    [{ token: [TOKEN] }, 'Expected `token` to be a string, got a value of type object'],
    [{ tokens: TOKEN }, 'Unknown option `tokens` (string); did you mean `token`?'],
    [TOKEN, "Expected `options` to be an object, got '…' (string)"],
  ])('never quotes the token: %j', (options, message) => {
    expect(() => dashboard(tested.client, options as DashboardOptions)).toThrow(message);
    expect(() => dashboard(tested.client, options as DashboardOptions)).not.toThrow(TOKEN);
  });

  it.each(['too-short', 'a token of non-Latin 文字', ' a token with a space'])(
    'rejects the token %j, and does not repeat it',
    (token) => {
      expect(() => dashboard(tested.client, { token })).toThrow(RangeError);
      expect(() => dashboard(tested.client, { token })).not.toThrow(token);
    },
  );
});
