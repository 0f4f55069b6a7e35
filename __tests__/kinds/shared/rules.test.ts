import { beforeAll, expect, it } from '@jest/globals';
import { describeKind, SHARED_KINDS, type SharedKind } from '../../../lib/api/lock-types';
import { mayEnter } from '../../../lib/kinds/shared/rules';
import { ENTER, RELEASE } from '../../../lib/kinds/shared/scripts';
import { InMemoryLocks } from '../../../lib/testing';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../../support/redis';

/*
 * Who may enter a shared lock is written twice: for locks in memory, and in Lua. One table for both. One that is inside,
 * waits or asks is the kind of its lock, of a semaphore with the number of permits that it takes.
 */

interface Case {
  readonly inside?: string;
  /** They came before the one that asks. */
  readonly waiting?: string;
  readonly asks: string;
  readonly permits?: number;
  readonly enters: boolean;
  /** Which of those that did not enter do so when all that were inside have left; none unless it says so. */
  readonly next?: string;
}

const CASES: readonly Case[] = [
  { asks: 'read', enters: true },
  { asks: 'write', enters: true },
  { asks: '1', enters: true },
  { inside: 'read read', asks: 'read', enters: true },
  { inside: 'read', asks: 'write', enters: false, next: 'write' },
  { inside: 'write', asks: 'read', enters: false, next: 'read' },
  { inside: 'write', asks: 'write', enters: false, next: 'write' },
  // Nobody overtakes a writer, and behind one come all readers that wait by then.
  { inside: 'read', waiting: 'write', asks: 'read', enters: false, next: 'write' },
  { inside: 'write', waiting: 'write', asks: 'read', enters: false, next: 'read' },
  { inside: 'write', waiting: 'read write', asks: 'read', enters: false, next: 'read read' },
  { inside: 'read', waiting: 'write read', asks: 'write', enters: false, next: 'write' },
  { inside: '1', permits: 2, asks: '1', enters: true },
  { inside: '1 1', permits: 2, asks: '1', enters: false, next: '1' },
  { inside: '2', permits: 4, asks: '2', enters: true },
  { inside: '2', permits: 4, asks: '3', enters: false, next: '3' },
  { inside: '3', permits: 4, asks: '1', enters: true },
  // One that takes few does not overtake one that takes many.
  { inside: '2', permits: 3, waiting: '2', asks: '1', enters: false, next: '2 1' },
  { inside: '3', permits: 3, waiting: '2 2', asks: '1', enters: false, next: '2' },
  // The number was lowered: it takes all there are, and is alone.
  { permits: 1, asks: '2', enters: true },
  { inside: '1', permits: 2, asks: '3', enters: false, next: '3' },
  { inside: '1', permits: 2, waiting: '3', asks: '1', enters: false, next: '3' },
];

interface One {
  readonly id: number;
  readonly text: string;
  readonly kind: SharedKind;
  readonly takes: number;
}

/** Where a lock is. */
interface Place {
  /** One attempt: whether it is inside then. Otherwise it is in the queue. */
  ask(one: One, permits: number): boolean | Promise<boolean>;
  leave(one: One): unknown;
}

/** Each in the order of the texts, which have numbers from `first` on. */
function ones(texts: string | undefined, first: number): One[] {
  return (texts?.split(' ') ?? []).map((text, i) => {
    const takes = Number(text) || 1;
    return { id: first + i, text, kind: Number(text) ? 'semaphore' : (text as SharedKind), takes };
  });
}

async function seenAt(place: Place, { inside, waiting, asks, permits = 1 }: Case): Promise<Partial<Case>> {
  const holders = ones(inside, 1);
  const queue = ones(waiting, 100);
  const [last] = ones(asks, 200) as [One];
  for (const one of holders) expect(await place.ask(one, permits)).toBe(true);
  for (const one of queue) expect(await place.ask(one, permits)).toBe(false);
  const enters = await place.ask(last, permits);
  const left = enters ? queue : [...queue, last];
  for (const one of holders) await place.leave(one);
  const next: string[] = [];
  for (const one of left) if (await place.ask(one, permits)) next.push(one.text);
  return { enters, next: next.join(' ') };
}

it('There is a case for each kind of shared lock alone, and beside each kind that may be in its key', () => {
  const kindsOf = (texts?: string) => new Set(ones(texts, 0).map(({ kind }) => kind));
  const tried = (asked: SharedKind, held?: SharedKind) =>
    CASES.some(
      ({ inside, waiting, asks }) =>
        waiting === undefined &&
        kindsOf(asks).has(asked) &&
        (held === undefined ? inside === undefined : kindsOf(inside).has(held)),
    );
  const missing = SHARED_KINDS.flatMap((asked) => {
    const others = SHARED_KINDS.filter((held) => describeKind(held) === describeKind(asked));
    return [undefined, ...others].filter((held) => !tried(asked, held)).map((held) => [held ?? 'nobody', asked]);
  });
  expect(missing).toEqual([]);
});

it.each(CASES)('In memory, who may enter a shared lock is %j', async (one) => {
  const lock = new InMemoryLocks().find('lock');
  const use = { is: 'a shared lock', as: 'a shared lock', isShared: true };
  const place: Place = {
    ask({ id, kind, takes }, count) {
      const permits = kind === 'semaphore' ? { count, at: 1 } : undefined;
      return lock.acquire({ ticket: `${id}`, kind, use, ttl: 60_000, permits, takes, since: id }, true).granted;
    },
    leave: ({ id }) => lock.release(`${id}`),
  };
  expect(await seenAt(place, one)).toEqual({ enters: one.enters, next: one.next ?? '' });
});

it.each(CASES)('By the rule alone, who may enter a shared lock is %j', ({ inside, waiting, asks, permits, enters }) => {
  const [last] = ones(asks, 200) as [One];
  expect(mayEnter(last, [...ones(inside, 1), ...ones(waiting, 100)], permits ?? 1)).toBe(enters);
});

describeReal('Who may enter a shared lock', () => {
  let client: TestClient;
  beforeAll(async () => {
    client = await createRealClient();
  });

  it.each(CASES)('In Redis, who may enter a shared lock is %j', async (one) => {
    const lock = uniqueKey('rules');
    const keys = [lock, `{${lock}}:waiters`];
    const run = async ({ source }: typeof ENTER, args: readonly (string | number)[]) =>
      (await client.eval(source, { keys, arguments: args.map(String) })) as number[];
    const ownerOf = ({ id, takes }: One) => `${id}:1${takes > 1 ? `*${takes}` : ''}`;
    const place: Place = {
      async ask(asking, permits) {
        const owner = ownerOf(asking);
        const place = [1, 1_000 + asking.id, 0, 60_000, 0];
        // Channel, ttl, the number, the queue, and no earlier attempt or lease that ends: see ENTER.
        const [, , value = 0] = await run(ENTER, [
          asking.kind,
          owner,
          lock,
          60_000,
          permits,
          0,
          '',
          ...place,
          owner,
          '',
        ]);
        return Number(value) > 0;
      },
      leave: (asking) => run(RELEASE, [asking.kind, ownerOf(asking), lock]),
    };
    expect(await seenAt(place, one)).toEqual({ enters: one.enters, next: one.next ?? '' });
  });
});
