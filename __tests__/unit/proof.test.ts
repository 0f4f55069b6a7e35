import { expect, it, jest } from '@jest/globals';
import { Proof } from '../../lib/redis/proof';
import { Subscription } from '../../lib/redis/subscription';
import { FakeClock } from '../support/fake-clock';

const time = FakeClock.install();

/** A proof whose test opens its subscription, answers what it publishes, and delivers its messages. */
function start({ isThere = true, renews = true, isConnected = true } = {}) {
  const subscriptions: Subscription[] = [];
  const answers: ((count: number) => void)[] = [];
  const failures: ((error: Error) => void)[] = [];
  const published: string[] = [];
  const heard: boolean[] = [];
  const deaf: string[] = [];
  const idle = jest.fn();
  const proof = new Proof({
    isConnected: () => isConnected,
    subscribe: (onMessage) => {
      if (!isThere) return undefined;
      subscriptions.push(new Subscription(['own'], onMessage, (one) => one.over()));
      return subscriptions.at(-1);
    },
    publish: (message) => {
      published.push(message);
      return new Promise((resolve, reject) => {
        answers.push(resolve);
        failures.push(reject);
      });
    },
    deaf: ({ message }) => {
      deaf.push(message);
      return renews;
    },
    heard: (isCounted) => heard.push(isCounted),
    idle,
  });
  const deliver = (message = published.at(-1) as string) => subscriptions.at(-1)?.onMessage(message);
  const answer = async (count = 1) => {
    answers.at(-1)?.(count);
    await time.advance(0);
  };
  /** A caller has waited long enough, and the channel is confirmed. */
  const open = async () => {
    proof.join();
    await time.advance(250);
    subscriptions.at(-1)?.opened();
  };
  return { proof, subscriptions, failures, published, heard, deaf, idle, deliver, answer, open };
}

it('A wait of less than 250 ms proves nothing, and leaves no timer', async () => {
  const { proof, subscriptions, idle } = start();
  for (let wait = 0; wait < 3; wait++) {
    proof.join();
    await time.advance(249);
    proof.leave();
    expect([subscriptions.length, time.pending]).toEqual([0, 0]);
    await time.advance(251);
  }
  expect(idle).toHaveBeenCalledTimes(3);
});

it('Waits that follow each other within 250 ms count as one', async () => {
  const { proof, subscriptions } = start();
  for (let wait = 0; wait < 2; wait++) {
    proof.join();
    await time.advance(130);
    proof.leave();
  }
  proof.join();
  await time.advance(1);
  expect(subscriptions).toHaveLength(1);
});

it('A connection that is doubted proves itself in the next wait, and not three seconds after the last time', async () => {
  const { proof, open, answer, deliver, subscriptions } = start();
  await open();
  deliver();
  await answer();
  const proofs = async () => {
    proof.leave();
    proof.join();
    await time.advance(1);
    return subscriptions.length;
  };
  expect(await proofs()).toBe(1);
  proof.doubt();
  expect(await proofs()).toBe(2);
});

it.each([
  ['the message first', ['deliver', 'answer']],
  ['the answer first', ['answer', 'deliver']],
] as const)(
  'A message that comes back proves the connection, every three seconds while callers wait: %s',
  async (_, order) => {
    const { open, published, heard, deliver, answer, proof } = start();
    await open();
    expect(published).toEqual(['1']);
    for (const step of order) await { deliver, answer }[step]();
    expect([heard, proof.isDeaf]).toEqual([[true], false]);
    await time.advance(2_999);
    expect(published).toEqual(['1']);
    await time.advance(1);
    expect(published).toEqual(['1', '2']);
    deliver();
    await answer(0);
    // The server of the commands does not count the connection.
    expect([heard, proof.isDeaf]).toEqual([[true, false], false]);
  },
);

it('A message that does not come back within a second of the answer means deaf, and the next one is sent at once over a new connection', async () => {
  const { open, published, deaf, answer, deliver, subscriptions, proof, heard } = start();
  await open();
  await time.advance(2_000);
  // Redis has not answered: nothing is known.
  expect([deaf, proof.isDeaf]).toEqual([[], false]);
  await answer();
  await time.advance(999);
  expect(proof.isDeaf).toBe(false);
  await time.advance(1);
  expect([deaf, proof.isDeaf]).toEqual([['a message of this registry to itself does not arrive'], true]);
  subscriptions.at(-1)?.over();
  await time.advance(1);
  expect(subscriptions).toHaveLength(2);
  subscriptions.at(-1)?.opened();
  expect(published).toEqual(['1', '2']);
  deliver('1');
  await answer();
  expect(proof.isDeaf).toBe(true);
  deliver();
  expect([proof.isDeaf, heard]).toEqual([false, [true]]);
});

it('A message that went to no connection, as the server says, has 250 ms to arrive', async () => {
  const { open, answer, deaf } = start();
  await open();
  await answer(0);
  await time.advance(249);
  expect(deaf).toEqual([]);
  await time.advance(1);
  expect(deaf).toHaveLength(1);
});

it('A message that lies in the socket after a block of the event loop is read before it counts as missing', async () => {
  const { open, answer, deliver, deaf } = start();
  await open();
  await answer();
  setImmediate(deliver);
  await time.advance(1_000);
  expect(deaf).toEqual([]);
});

it('A channel that is not confirmed within a second, while a message is published, means deaf; where nothing can be made anew, the next try comes three seconds later', async () => {
  const { proof, deaf, subscriptions, published, answer } = start({ renews: false });
  proof.join();
  await time.advance(250 + 999);
  expect(published).toEqual([]);
  await time.advance(1);
  // Commands are answered.
  await answer(0);
  expect(deaf).toEqual([]);
  await time.advance(250);
  expect([deaf.length, proof.isDeaf]).toEqual([1, true]);
  await time.advance(2_999);
  expect([published.length, subscriptions.length]).toEqual([1, 1]);
  await time.advance(1_001);
  expect(published).toHaveLength(2);
});

it('A channel that is confirmed after the message was published is tried once more', async () => {
  const { proof, deaf, subscriptions, published, answer, deliver } = start();
  proof.join();
  await time.advance(1_250);
  subscriptions.at(-1)?.opened();
  await answer(0);
  await time.advance(250);
  expect([published, deaf]).toEqual([['1', '2'], []]);
  deliver();
  await answer(1);
  expect(proof.isDeaf).toBe(false);
});

it('A connection that is not made yet proves nothing', async () => {
  const { proof, deaf, published, subscriptions } = start({ isConnected: false });
  proof.join();
  await time.advance(10_000);
  expect([published, deaf]).toEqual([[], []]);
  subscriptions.at(-1)?.opened();
  expect(published).toEqual(['1']);
  proof.close();
});

it('Where commands fail too, or there is no connection, nothing is said of messages', async () => {
  const failing = start();
  await failing.open();
  failing.failures.at(-1)?.(new Error('silent'));
  await time.advance(3_000);
  expect([failing.published, failing.deaf]).toEqual([['1', '2'], []]);
  failing.proof.leave();
  failing.failures.at(-1)?.(new Error('silent'));
  await time.advance(0);
  expect(failing.idle).toHaveBeenCalledTimes(1);
  const none = start({ isThere: false });
  none.proof.join();
  await time.advance(5_000);
  expect([none.deaf, none.published]).toEqual([[], []]);
  none.proof.leave();
});

it('An answer that comes after the next message was sent, or after close(), changes nothing', async () => {
  const { open, proof, answer, heard, deaf, deliver } = start();
  await open();
  proof.close();
  deliver();
  await answer();
  await time.advance(5_000);
  expect([heard, deaf, time.pending]).toEqual([[], [], 0]);
});

it('The last caller that leaves ends the proof: its channel lingers, and nothing is published', async () => {
  const { open, proof, answer, deliver, published, subscriptions, idle } = start();
  await open();
  proof.leave();
  expect(idle).not.toHaveBeenCalled();
  deliver();
  await answer();
  expect(idle).toHaveBeenCalledTimes(1);
  await time.advance(1_000);
  expect([subscriptions[0]?.isOver, published.length, time.pending]).toEqual([true, 1, 0]);
});

it('A subscription that ended with its connection is made anew, and proves nothing', async () => {
  const { open, subscriptions, published, answer, deaf, proof } = start();
  await open();
  await answer();
  subscriptions[0]?.over();
  await time.advance(1_000);
  expect([deaf, subscriptions.length]).toEqual([[], 2]);
  subscriptions[1]?.over();
  await time.advance(1_000);
  expect([deaf, subscriptions.length]).toEqual([[], 3]);
  subscriptions[2]?.opened();
  expect(published).toEqual(['1', '2']);
  proof.close();
});
