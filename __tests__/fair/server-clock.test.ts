import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ServerClock } from '../../lib/protocols/fair/server-clock';

const CONNECTION = '1/0';

const WINDOW = 1_000;

/** A server whose clock is off by `offset`, and faster or slower by `drift` than the local one. */
class Server {
  readonly #offset: number;
  readonly #drift: number;
  #steps: { readonly at: number; readonly by: number }[] = [];

  constructor(offset: number, drift: number) {
    this.#offset = offset;
    this.#drift = drift;
  }

  set(at: number, by: number): void {
    this.#steps.push({ at, by });
  }

  /** What its clock shows at a local time, in whole microseconds. */
  time(local: number): number {
    const stepped = this.#steps.reduce((sum, { at, by }) => (at <= local ? sum + by : sum), 0);
    return Math.floor((this.#offset + local * (1 + this.#drift) + stepped) * 1_000) / 1_000;
  }

  /** The local time at which a key ends that was made at local `madeAt`: Redis counts in whole ms of its own clock. */
  endOf(madeAt: number, window: number): number {
    const shown = this.#offset + madeAt * (1 + this.#drift);
    return (Math.floor(shown) + window - this.#offset) / (1 + this.#drift);
  }
}

const latency = fc.double({ min: 0, max: 3_000, noNaN: true });
const short = fc.double({ min: 0, max: 20, noNaN: true });

const world = fc.record({
  offset: fc.double({ min: -1e6, max: 1e12, noNaN: true }),
  drift: fc.double({ min: -0.000_999, max: 0.000_999, noNaN: true }),
  // Exchanges: the pause before each, the way there, and the way back.
  exchanges: fc.array(fc.tuple(fc.double({ min: 0, max: 120_000, noNaN: true }), latency, latency), { maxLength: 6 }),
  sentBefore: fc.double({ min: 0, max: 100_000, noNaN: true }),
  madeAfter: fc.double({ min: 0, max: 100_000, noNaN: true }),
  delay: fc.oneof(short, latency),
  window: fc.integer({ min: 1, max: WINDOW }),
  // Whether the last exchanges are noted after the grant was made: a reply overtook the message.
  late: fc.nat({ max: 2 }),
});

describe('ServerClock', () => {
  it('ServerClock never relies on a grant beyond the true end of its window', () => {
    fc.assert(
      fc.property(world, ({ offset, drift, exchanges, sentBefore, madeAfter, delay, window, late }) => {
        const server = new Server(offset, drift);
        const clock = new ServerClock();
        const notes: { sentAt: number; receivedAt: number; time: number }[] = [];
        for (const [wait, to, back] of exchanges) {
          const sentAt = (notes.at(-1)?.receivedAt ?? 1_000) + wait;
          notes.push({ sentAt, receivedAt: sentAt + to + back, time: server.time(sentAt + to) });
        }
        const early = notes.slice(0, notes.length - late);
        const sentAt = (early.at(-1)?.receivedAt ?? 1_000) + sentBefore;
        const madeAt = sentAt + madeAfter;
        const receivedAt = Math.max(madeAt + delay, ...notes.map((note) => note.receivedAt));
        for (const note of notes) clock.note(note.sentAt, note.receivedAt, note.time, CONNECTION);
        const until = clock.grantUntil(server.time(madeAt), window, sentAt, receivedAt, CONNECTION);
        // A thousandth of a ms: so much is lost where stamps and times are rounded.
        expect(until).toBeLessThanOrEqual(server.endOf(madeAt, window) + 0.001);
        expect(until).toBeLessThanOrEqual(receivedAt + window);
      }),
      { numRuns: 5_000 },
    );
  });

  it('ServerClock trusts most of the window when the message comes soon, however long ago the exchange was', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -1e6, max: 1e12, noNaN: true }),
        fc.double({ min: -0.000_01, max: 0.000_01, noNaN: true }),
        fc.double({ min: 0, max: 60_000, noNaN: true }),
        short,
        short,
        (offset, drift, age, roundTrip, delay) => {
          const server = new Server(offset, drift);
          const clock = new ServerClock();
          clock.note(5_000, 5_000 + roundTrip, server.time(5_000 + roundTrip / 2), CONNECTION);
          const madeAt = 5_000 + roundTrip + age;
          const until = clock.grantUntil(server.time(madeAt), WINDOW, 0, madeAt + delay, CONNECTION);
          expect(until).toBeGreaterThan(madeAt + WINDOW - roundTrip - 0.0011 * age - 3);
        },
      ),
    );
  });

  const noted = (): { server: Server; clock: ServerClock } => {
    const server = new Server(1e12, 0);
    const clock = new ServerClock();
    clock.note(1_000, 1_001, server.time(1_000.5), CONNECTION);
    return { server, clock };
  };

  it('ServerClock knows nothing of another connection, and of none', () => {
    const { server, clock } = noted();
    const until = (connection: string | undefined) =>
      clock.grantUntil(server.time(5_000), WINDOW, 2_000, 5_010, connection);
    expect(until(CONNECTION)).toBeGreaterThan(5_900);
    for (const other of ['2/0', '1/1', undefined]) expect(until(other)).toBeLessThan(3_000);
    clock.note(5_020, 5_021, server.time(5_020), undefined);
    expect(until(CONNECTION)).toBeLessThan(3_000);
    expect(until(undefined)).toBeLessThan(3_000);
  });

  it('ServerClock knows nothing before its first exchange, but when the ticket was sent', () => {
    const until = new ServerClock().grantUntil(1e12, WINDOW, 2_000, 2_100, CONNECTION);
    expect(until).toBeGreaterThan(2_900);
    expect(until).toBeLessThan(3_000);
  });

  it.each([-3_600_000, -1_000, 1_000, 3_600_000])(
    'ServerClock trusts no stamp for a minute after an exchange that contradicts the one before: the clock was set by %d ms',
    (by) => {
      const { server, clock } = noted();
      server.set(4_000, by);
      clock.note(4_900, 4_901, server.time(4_900.5), CONNECTION);
      const until = (local: number) => clock.grantUntil(server.time(local), WINDOW, 2_000, local + 10, CONNECTION);
      expect(until(5_000)).toBeLessThan(3_000);
      // Neither does an exchange within that minute bring the trust back.
      clock.note(30_000, 30_001, server.time(30_000.5), CONNECTION);
      expect(until(31_000)).toBeLessThan(3_000);
      clock.note(65_000, 65_001, server.time(65_000.5), CONNECTION);
      expect(until(66_000)).toBeGreaterThan(66_900);
    },
  );

  it('ServerClock trusts readings that differ by 0.1 % of the time between them and 2 ms, and no others', () => {
    const untilAfter = (difference: number) => {
      const clock = new ServerClock();
      clock.note(1_000, 1_000, 1e12, CONNECTION);
      clock.note(101_000, 101_000, 1e12 + 100_000 + difference, CONNECTION);
      return clock.grantUntil(1e12 + 100_500 + difference, WINDOW, 2_000, 101_510, CONNECTION);
    };
    expect(untilAfter(101.5)).toBeGreaterThan(102_400);
    expect(untilAfter(102.5)).toBeLessThan(3_000);
  });

  it('ServerClock takes no contradiction from slow replies or a clock that drifts by 0.09 %', () => {
    const server = new Server(1e12, 0.000_9);
    const clock = new ServerClock();
    for (let i = 0; i < 50; i++) {
      const sentAt = 1_000 + i * 10_000;
      clock.note(sentAt, sentAt + 3_000, server.time(sentAt + (i % 2) * 3_000), CONNECTION);
    }
    clock.note(600_000, 600_001, server.time(600_000.5), CONNECTION);
    expect(clock.grantUntil(server.time(601_000), WINDOW, 2_000, 601_010, CONNECTION)).toBeGreaterThan(601_900);
  });
});
