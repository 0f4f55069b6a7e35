import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../random';
import type { RedisServer } from '../../redis';
import { type AdminClient, COMPANION } from '../redis-content';
import type { SlotMover } from './slot-mover';

export interface ServerTarget {
  readonly server: RedisServer;
  /** Acquisitions wait for it. */
  readonly replica: RedisServer | undefined;
  readonly admin: AdminClient;
  /** The server is a node of a cluster. */
  readonly mover: SlotMover | undefined;
}

type ServerFault = (target: ServerTarget, random: Random) => Promise<void>;

/** What happens to the server, for all workers at once. Each resolves when it is over. */
export const serverFaults = {
  // The first one of the type that has a replica.
  'replica SIGSTOP': async ({ replica }, random) => {
    replica?.kill('SIGSTOP');
    await sleep(random.whole(50, 1_500));
    replica?.kill('SIGCONT');
  },
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
  'CLIENT KILL replica': async ({ admin }) => {
    await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'replica']);
  },
  'SCRIPT FLUSH': async ({ admin }) => {
    await admin.sendCommand(['SCRIPT', 'FLUSH']);
  },
  // As eviction does, or somebody who mends a lock by hand.
  'companion deleted': async ({ admin }, random) => {
    const names = (await admin.keys('*')).filter((name) => COMPANION.test(name));
    if (names.length > 0) await admin.del(random.pick(names));
  },
} as const satisfies Record<string, ServerFault>;

export type ServerFaultKind = keyof typeof serverFaults;
export const SERVER_FAULTS = Object.keys(serverFaults) as ServerFaultKind[];

async function pause(admin: AdminClient, mode: 'ALL' | 'WRITE', ms: number): Promise<void> {
  await admin.sendCommand(['CLIENT', 'PAUSE', String(ms), mode]);
  await sleep(ms);
}
