import { expect, it } from '@jest/globals';
import type { Inboxes } from '../../lib/core/backend';
import { Inbox } from '../../lib/core/inbox';
import type { RedisLease } from '../../lib/core/lease';
import { takers } from '../../lib/core/loss';
import { LockNames } from '../../lib/redis/names';
import { until } from '../support/until';

const names = new LockNames('r', 'key');

/** An inbox, what it sends, and how it hears a message. `locks`: those that are cached. */
function open(locks: ConstructorParameters<typeof Inbox>[3] = () => []) {
  const sent: string[] = [];
  let receive = (_message: string): void => undefined;
  const inboxes: Inboxes = {
    countsAll: true,
    async open(_owner, hear) {
      receive = hear;
    },
    async send(owner, message) {
      sent.push(`${owner} < ${message}`);
      return 1;
    },
  };
  const inbox = new Inbox(inboxes, 'me', 100, locks, () => undefined);
  void inbox.open();
  return { inbox, sent, hear: (message: string) => receive(message) };
}

const leaseOf = (owner: string, isUnlocked = false) => ({ owner, isUnlocked, hold: {} }) as RedisLease;

it('The end of a task is told to who took its lock, when its lease is given back', () => {
  const { inbox, sent } = open();
  const lease = leaseOf('me:1');
  takers.set(lease.hold, 'them:1');
  inbox.lost(lease, names);
  expect(sent).toEqual([]);
  inbox.ended(lease, names);
  expect(sent).toEqual(['them:1 < ended me:1 r:key']);
});

it('It is told too where the release finds the loss', () => {
  const { inbox, sent } = open();
  const lease = leaseOf('me:1', true);
  takers.set(lease.hold, 'them:1');
  inbox.lost(lease, names);
  expect(sent).toEqual(['them:1 < ended me:1 r:key']);
});

it('Who took a lock hears of no end while the task runs, though the loss was found before the message came', async () => {
  const { inbox, sent, hear } = open(() => [
    { leases: [], passing: { openProtocol: () => ({ availability: {} }) as never }, mayRest: () => undefined },
  ]);
  const lease = leaseOf('me:1');
  inbox.lost(lease, names);
  hear('taken me:1 them:1 r:key');
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  expect(sent).toEqual([]);
  inbox.ended(lease, names);
  expect(sent).toEqual(['them:1 < ended me:1 r:key']);
});

it('Of an owner that is to take a lock there is no end before it has entered, or ended', async () => {
  const { inbox, sent, hear } = open();
  inbox.begins('me:1');
  hear('taken me:1 them:1 r:key');
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  expect(sent).toEqual([]);
  inbox.ended({ owner: 'me:1' }, names);
  expect(sent).toEqual(['them:1 < ended me:1 r:key']);
  inbox.begins('me:2');
  inbox.enters('me:2');
  inbox.ended({ owner: 'me:2' }, names);
  expect(sent).toHaveLength(1);
});

it('All that wait for the end of a task hear it, and who stops does not stop the others', () => {
  const { inbox, hear } = open();
  const heard: string[] = [];
  const stops = ['a', 'b', 'c'].map((name) => inbox.watch('them:1', (word) => heard.push(`${name} ${word}`)));
  stops[0]?.();
  stops[0]?.();
  hear('ended them:1 r:key');
  hear('ended them:2 r:key');
  expect(heard).toEqual(['b ended', 'c ended']);
});

it('A loss that was found before the message came is named by that, where its task still runs', async () => {
  const { inbox, hear } = open();
  const lease = leaseOf('me:1');
  inbox.lost(lease, names);
  hear('taken me:1 them:1 r:key');
  await until(() => takers.has(lease.hold));
  expect(takers.get(lease.hold)).toBe('them:1');
});

it('A reminder that the task has ended is answered also where its lock is evicted', async () => {
  const { sent, hear } = open();
  hear('taken me:1 them:1 r:key');
  await until(() => sent.length > 0);
  expect(sent).toEqual(['them:1 < ended me:1 r:key']);
});
