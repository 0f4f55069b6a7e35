import { afterEach, expect, it } from '@jest/globals';
import { Activity } from '../../lib/dashboard/activity';
import { FakeClock } from '../support/fake-clock';
import { mockRedis } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

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
  await call('late');
  expect(locks()).toEqual([nameOf('late')]);
});
