import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../../lib';
import { FakeClock } from '../../support/fake-clock';
import { lateReply, mockRedis, queuedUntilLetIn } from '../../support/mock-redis';

const time = FakeClock.install();

/** A connection for messages, with what a server does that publishes one. */
function messages() {
  let publish: (message: string) => void = () => undefined;
  const connection = {
    isOpen: true,
    isReady: true,
    on: () => connection,
    connect: async () => undefined,
    destroy: () => undefined,
    unref: () => undefined,
    unsubscribe: async () => undefined,
    async subscribe(channel: string, listener: (message: string, channel: string) => void) {
      // Not the one on which the registry hears itself.
      if (!channel.includes(':@')) publish = (message) => listener(message, channel);
    },
  };
  return { connection, publish: (message: string) => publish(message) };
}

it.each(['read', 'write'] as const)(
  'A caller (%s) that is let in by a message of a server that may have been replaced asks once more',
  async (kind) => {
    const leaseEnd = '1700000020000';
    const { connection, publish } = messages();
    const client = Object.assign(mockRedis(), { socketEpoch: 1, duplicate: () => connection });
    const [answerInSilence, answerToOther] = [lateReply(), lateReply()];
    let attempts = 0;
    let ticket = '';
    client.evalSha.mockImplementation(async (_sha, options) => {
      const [itsKind, owner = ''] = options?.arguments ?? [];
      if (itsKind !== kind) return answerToOther.promise;
      ticket = owner;
      return ++attempts === 3 ? answerInSilence.promise : queuedUntilLetIn(20_000, leaseEnd);
    });
    const registry = new RedisLockRegistry(client, { registryKey: 'replaced', idleBetweenTries: 65 });
    let isIn = false;
    const waiting = registry
      .readWrite('key')
      [kind].lock({ waitTime: 3_000 })
      .then(
        () => (isIn = true),
        () => undefined,
      );
    await time.advance(10);
    expect(attempts).toBe(2); // one before the subscription, and one after it
    // Something is unanswered for so long that the server may be another one when it answers.
    const other = registry
      .obtain('other')
      .tryLock()
      .catch(() => null);
    while (attempts < 3) await time.advance(5);
    await time.advance(40);
    answerToOther.resolve(1);
    await time.advance(1);
    answerInSilence.resolve(queuedUntilLetIn(20_000, leaseEnd));
    await time.advance(1);
    publish(`${kind}:${ticket}=${leaseEnd}`);
    await time.advance(100);
    expect([isIn, attempts]).toEqual([false, 3]);
    // By then the server has learned that it was replaced.
    await time.advance(50);
    expect([isIn, attempts]).toEqual([false, 4]);
    await time.advance(5_000);
    await Promise.all([waiting, other]);
  },
);
