import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../random';
import type { RedisServer } from '../../redis';
import type { AdminClient } from '../redis-content';

export interface ServerTarget {
  readonly server: RedisServer;
  readonly admin: AdminClient;
}

type ServerFault = (target: ServerTarget, random: Random) => Promise<void>;

/** What happens to the server, for all workers at once. Each resolves when it is over. */
export const serverFaults = {
  'server SIGSTOP': async ({ server }, random) => {
    server.kill('SIGSTOP');
    await sleep(random.whole(50, 1_500));
    server.kill('SIGCONT');
  },
  'CLIENT PAUSE ALL': async ({ admin }, random) => pause(admin, 'ALL', random.whole(50, 1_000)),
  'CLIENT PAUSE WRITE': async ({ admin }, random) => pause(admin, 'WRITE', random.whole(50, 1_000)),
  'CLIENT KILL normal': async ({ admin }) => {
    await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes']);
  },
  'CLIENT KILL pubsub': async ({ admin }) => {
    await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']);
  },
  'SCRIPT FLUSH': async ({ admin }) => {
    await admin.sendCommand(['SCRIPT', 'FLUSH']);
  },
} as const satisfies Record<string, ServerFault>;

export type ServerFaultKind = keyof typeof serverFaults;
export const SERVER_FAULTS = Object.keys(serverFaults) as ServerFaultKind[];

async function pause(admin: AdminClient, mode: 'ALL' | 'WRITE', ms: number): Promise<void> {
  await admin.sendCommand(['CLIENT', 'PAUSE', String(ms), mode]);
  await sleep(ms);
}
