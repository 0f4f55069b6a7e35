import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockNames } from '../../lib/redis/names';
import { Subscription } from '../../lib/redis/subscription';
import { Claim, type Grant } from '../../lib/strategies/strategy';
import { type RoomServices, type Ticket, WaitingRoom } from '../../lib/strategies/waiting-room';
import { FakeClock } from '../support/fake-clock';

const IDLE = 100;

describe('WaitingRoom', () => {
  let clock: FakeClock;
  let asked: { readonly at: number; readonly owners: readonly string[] }[];
  let life: number | Error;
  let subscription: Subscription | undefined;
  let left: number;
  let emptied: number;
  let room: WaitingRoom;
  const names = new LockNames('registry', 'key');

  beforeEach(() => {
    clock = new FakeClock();
    [asked, life, left, emptied] = [[], 60_000, 0, 0];
    subscription = new Subscription(names.lock, ['channel'], () => undefined);
    const services: RoomServices = {
      idleBetweenTries: IDLE,
      ask: async (_, tickets) => {
        asked.push({ at: clock.now, owners: tickets.map(({ claim }) => claim.owner) });
        if (life instanceof Error) throw life;
        return life;
      },
      listen: () => subscription,
      leave: () => left++,
      empty: () => emptied++,
    };
    room = new WaitingRoom(names, services);
  });

  afterEach(() => clock.restore());

  const admit = (number: number): Ticket =>
    room.admit(new Claim(names, `process:${number}`, { ttl: 60_000, waits: true }, undefined));

  const grant: Grant = { granted: true, until: Number.POSITIVE_INFINITY, fencingToken: undefined };

  /** Somebody waits, whose messages arrive, and whose tickets Redis knows. */
  const listening = async () => {
    const ticket = admit(1);
    room.listen();
    subscription?.settle(true);
    await clock.advance(0);
    asked.length = 0;
    return ticket;
  };

  it('looks as soon as messages can arrive, so that Redis knows it', async () => {
    admit(1);
    admit(2);
    room.listen();
    expect(room.isListening).toBe(false);
    subscription?.settle(true);
    await clock.advance(0);
    expect(room.isListening).toBe(true);
    expect(asked).toEqual([{ at: 1_000, owners: ['process:1', 'process:2'] }]);
  });

  it('looks once for all its callers when the life of the key ends, and not before', async () => {
    await listening();
    for (let i = 2; i <= 100; i++) admit(i);
    room.lookAfter(30_000);
    await clock.advance(29_999);
    expect(asked).toEqual([]);
    await clock.advance(1);
    expect(asked.map(({ owners }) => owners.length)).toEqual([100]);
    await clock.advance(59_999);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    expect(asked).toHaveLength(2);
  });

  it('polls as long as no message can arrive, once for all of them', async () => {
    subscription = undefined;
    for (let i = 0; i < 50; i++) admit(i);
    room.listen();
    room.lookAfter(60_000);
    await clock.advance(10 * IDLE);
    expect(asked).toHaveLength(10);
    expect(asked.every(({ owners }) => owners.length === 50)).toBe(true);
  });

  it('polls a key without an end, though it listens', async () => {
    await listening();
    room.lookAfter(-1);
    life = -1;
    await clock.advance(30 * IDLE);
    expect(asked).toHaveLength(3);
  });

  it('bears a life beyond the longest timer', async () => {
    await listening();
    room.lookAfter(2 ** 40);
    await clock.advance(60_000);
    expect(asked).toEqual([]);
  });

  it('sees to a grant of another process at the end of its window, whatever older replies say', async () => {
    await listening();
    room.seeTo(1_000);
    room.lookAfter(60_000); // the reply to what was sent before the grant
    await clock.advance(999);
    expect(asked).toEqual([]);
    await clock.advance(1);
    expect(asked).toHaveLength(1);
    await clock.advance(59_000);
    expect(asked).toHaveLength(1);
  });

  it('looks when a message may have been missed', async () => {
    await listening();
    room.lookAfter(60_000);
    subscription?.wake();
    await clock.advance(0);
    expect(asked).toHaveLength(1);
  });

  it('looks again when a message may have been missed while it was looking', async () => {
    await listening();
    const looking = room.look();
    subscription?.wake();
    await looking;
    await clock.advance(0);
    expect(asked).toHaveLength(2);
  });

  it('leaves out those who have been granted the lock', async () => {
    const first = await listening();
    admit(2);
    first.deliver(grant);
    await room.look();
    expect(asked.map(({ owners }) => owners)).toEqual([['process:2']]);
  });

  it('sends many tickets by several scripts', async () => {
    await listening();
    for (let i = 2; i <= 1_200; i++) admit(i);
    await room.look();
    expect(asked.map(({ owners }) => owners.length)).toEqual([500, 500, 200]);
  });

  it('lets every caller ask for itself when its look fails', async () => {
    const tickets = [await listening(), admit(2)];
    const resumed: unknown[] = [];
    for (const ticket of tickets) ticket.attach((outcome) => resumed.push(outcome));
    life = new Error('no answer');
    await room.look();
    expect(resumed).toEqual([undefined, undefined]);
  });

  it('tells a caller of a grant, also of one that came before it waited', async () => {
    const resumed: unknown[] = [];
    const [early, late] = [admit(1), admit(2)];
    early.deliver(grant);
    early.attach((outcome) => resumed.push(outcome));
    const detach = late.attach((outcome) => resumed.push(outcome));
    detach();
    late.deliver(grant);
    expect(resumed).toEqual([grant]);
  });

  it('leaves no timer and no subscription when the last one goes', async () => {
    await listening();
    admit(2);
    room.lookAfter(60_000);
    room.dismiss('process:1');
    expect([left, emptied, clock.pending]).toEqual([0, 0, 1]);
    room.dismiss('process:2');
    room.dismiss('process:2');
    expect([left, emptied, clock.pending]).toEqual([1, 1, 0]);
    subscription?.wake();
    await clock.advance(60_000);
    expect(asked).toEqual([]);
  });

  it('tries again to listen after a subscription that was not to be had', async () => {
    admit(1);
    room.listen();
    const failed = subscription;
    subscription = new Subscription(names.lock, ['channel'], () => undefined);
    failed?.settle(false);
    await clock.advance(0);
    subscription.settle(true);
    await clock.advance(0);
    expect(room.isListening).toBe(true);
  });
});
