import { afterEach, expect, it } from '@jest/globals';
import { dashboard } from '../../../lib/tools/dashboard';
import { Activity } from '../../../lib/tools/dashboard/activity';
import { untilCollected } from '../../support/collected';
import { FakeClock } from '../../support/fake-clock';
import { mockRedis } from '../../support/mock-redis';
import { createRegistry } from '../../support/test-registry';
import { ADDRESS, TOKEN } from './tested-page';

const time = FakeClock.install();
let activity: Activity;

afterEach(() => activity.stop());

it('The page counts the calls of a bounded number of keys at a time', async () => {
  activity = new Activity();
  const { registry, nameOf } = createRegistry(mockRedis());
  const call = (key: string) => registry.run(key, () => undefined);
  const locks = () => activity.busiest().map(({ lock }) => lock);
  for (let i = 0; i < 1_000; i++) await call(`key ${i}`);
  for (let i = 0; i < 3; i++) await call('late');
  expect(locks()).toHaveLength(10);
  expect(locks()).not.toContain(nameOf('late'));
  await time.advance(121_000);
  // A re-entry is no call.
  for (let i = 0; i < 3; i++) await registry.run('late', () => call('late'));
  expect(activity.busiest()).toMatchObject([{ lock: nameOf('late'), calls: 3 }]);
});

it('The page forgets the calls of two minutes ago, though nobody has called since', async () => {
  activity = new Activity();
  const { registry } = createRegistry(mockRedis());
  await registry.run('key', () => undefined);
  await time.advance(61_000);
  expect(activity.busiest()).toMatchObject([{ calls: 1 }]);
  await time.advance(61_000);
  expect(activity.busiest()).toEqual([]);
});

it('The page keeps nothing of what has ended: leases, sections, and calls (P8)', async () => {
  activity = new Activity();
  const { registry } = createRegistry(mockRedis());
  const lock = registry.obtain('key');
  const section = async (): Promise<WeakRef<object>> => {
    const lease = await lock.lock();
    await lease.unlock();
    return new WeakRef(lease);
  };
  const ended = await section();
  await lock.run(() => lock.run(() => expect(activity.held.size).toBe(1)));
  await lock.run(() => undefined);
  await untilCollected(ended);
  expect([activity.held.size, activity.waits().size]).toEqual([0, 0]);
});

it('The page remembers a bounded number of the registries of its process', async () => {
  activity = new Activity();
  const { registry: used } = createRegistry(mockRedis());
  await used.run('key', () => undefined);
  const owners: string[] = [];
  for (let i = 0; i <= 1_000; i++) {
    const { registry } = createRegistry(mockRedis());
    await registry.run('key', () => owners.push(`${registry.id}:1`));
    await registry.close();
    // One that holds locks again and again stays.
    if (i === 500) await used.run('key', () => undefined);
  }
  const known = [owners[0], owners[1_000], `${used.id}:1`].map((owner) => activity.isOfProcess(String(owner)));
  expect(known).toEqual([false, true, true]);
});

it('The page of one registryKey shows nothing of other registries of its process', async () => {
  const [ours, others] = [createRegistry(mockRedis()), createRegistry(mockRedis())];
  using page = dashboard(mockRedis(), { registryKey: ours.registryKey, token: TOKEN });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const view = async () => (await page(new Request(`${ADDRESS}?view=locks`, { headers }))).json();
  await others.registry.obtain('held').lock();
  expect(await view()).toMatchObject({ changes: [], here: null });
  await ours.registry.obtain('key').lock();
  const shown = [{ lock: ours.nameOf('key') }];
  expect(await view()).toMatchObject({ changes: shown, here: shown });
});
