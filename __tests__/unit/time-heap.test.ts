import { expect, it } from '@jest/globals';
import { TimeHeap } from '../../lib/internal/timers';

class Member {
  position = -1;
  readonly time: number;

  constructor(time: number) {
    this.time = time;
  }
}

/** The same sequence in every run. */
function* pseudoRandom(): Generator<number, never> {
  for (let state = 1; ; ) {
    state = (state * 48_271) % 2_147_483_647;
    yield state;
  }
}

it('finds the earliest member, however many have joined and left before', () => {
  const heap = new TimeHeap<Member>();
  const random = pseudoRandom();
  let expected: Member[] = [];
  for (let i = 0; i < 2_000; i++) {
    const leaving = expected[random.next().value % Math.max(1, expected.length)];
    if (leaving !== undefined && random.next().value % 3 === 0) {
      heap.remove(leaving);
      // It has left: a second time does nothing.
      heap.remove(leaving);
      expected = expected.filter((member) => member !== leaving);
    } else {
      const member = new Member(random.next().value % 100);
      heap.add(member, member.time);
      expected.push(member);
    }
    const earliest = Math.min(...expected.map(({ time }) => time));
    expect([heap.earliest, heap.first?.time ?? Number.POSITIVE_INFINITY]).toEqual([earliest, earliest]);
  }
  expect(new Set(heap.members)).toEqual(new Set(expected));
  const order: number[] = [];
  for (let { first } = heap; first !== undefined; { first } = heap) {
    order.push(first.time);
    heap.remove(first);
  }
  expect(order).toEqual(expected.map(({ time }) => time).sort((a, b) => a - b));
});
