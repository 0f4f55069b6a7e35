/** A contender in its own process, which the test can kill. */

import { createClient } from 'redis';
import { RedisLockRegistry } from '../../../lib';
import type { RedisAddress } from '../../../support/redis';
import { Contender, type LeaseEvent, type Outcome } from './contender';
import { contenderOptions } from './settings';

export interface Call {
  readonly id: number;
  readonly method: 'lock' | 'tryLock' | 'abort' | 'renew' | 'unlock';
  readonly key: string;
  readonly waitTime: number;
}

export type Message = { readonly leaseEvent: LeaseEvent } | { readonly id: number; readonly outcome: Outcome };

async function main(): Promise<void> {
  const { address, registryKey } = JSON.parse(process.argv[2] as string) as {
    address: RedisAddress;
    registryKey: string;
  };
  const client = createClient({ socket: { ...address, reconnectStrategy: 5 } });
  client.on('error', () => {});
  await client.connect();
  const registry = new RedisLockRegistry(client, { ...contenderOptions, registryKey, onWarning: () => {} });
  const send = (message: Message) => process.send?.(message);
  const contender = new Contender(`process-${process.pid}`, registry, (leaseEvent) => send({ leaseEvent }));
  process.on('message', ({ id, method, key, waitTime }: Call) => {
    void contender[method](key, waitTime).then((outcome) => send({ id, outcome }));
  });
  process.on('disconnect', () => process.exit());
  send({ id: 0, outcome: 'done' });
}

void main();
