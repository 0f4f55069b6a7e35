import { EventEmitter } from 'node:events';
import { expect, it } from '@jest/globals';
import { SingleClient, type SingleIoredis } from '../../lib/ioredis/client';
import { lateReply } from '../support/mock-redis';

it('A command that ioredis has queued is not rejected by the failure of a reconnect', async () => {
  const reply = lateReply();
  const redis = Object.assign(new EventEmitter(), {
    options: { autoResendUnfulfilledCommands: false },
    status: 'ready',
    call: () => reply.promise,
  });
  const client = new SingleClient(redis as unknown as SingleIoredis);
  const lost = expect(client.eval('return 1', { keys: ['key'] })).rejects.toThrow('connection was lost');
  redis.emit('close');
  await lost;
  const queued = client.eval('return 1', { keys: ['key'] });
  redis.emit('close');
  redis.emit('ready');
  reply.resolve(1);
  expect(await queued).toBe(1);
});
