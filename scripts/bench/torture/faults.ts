import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultyProxy } from '../../../support/proxy';
import { Random } from '../../../support/random';
import type { RedisServer } from '../../../support/redis';
import { sharedNow } from '../../../support/soak/awake-clock';
import { HEALTHY } from '../../../support/soak/settings';
import type { ToWorker } from './worker';

/** One process and the network before it. */
export interface Victim {
  readonly proxy: FaultyProxy;
  signal(signal: NodeJS.Signals): void;
  send(message: ToWorker): void;
}

export interface Scene {
  readonly server: RedisServer;
  readonly victims: readonly Victim[];
  command(...words: string[]): Promise<unknown>;
}

/** Each is over when it resolves. The longest of them are longer than the ttl of a lease. */
const FAULTS = {
  delay: async (_, { proxy }, random) => {
    proxy.requests.delay = random.whole(50, 500);
    proxy.replies.delay = random.whole(50, 500);
    await sleep(1_000);
    proxy.delay = HEALTHY;
  },
  cut: async (_, { proxy }) => proxy.reset(),
  'lost reply': async (_, { proxy }) => {
    await Promise.race([proxy.loseReply(), sleep(1_000)]);
  },
  'black hole': async (_, { proxy }, random) => {
    proxy.blackHole = true;
    await sleep(random.whole(500, 3_000));
    proxy.blackHole = false;
    proxy.reset(); // what was swallowed is a gap in the stream
  },
  'process frozen': async (_, victim, random) => {
    victim.signal('SIGSTOP');
    await sleep(random.whole(500, 3_500));
    victim.signal('SIGCONT');
  },
  'server frozen': async ({ server }, _, random) => {
    server.kill('SIGSTOP');
    await sleep(random.whole(300, 2_500));
    server.kill('SIGCONT');
  },
  'memory full': async ({ command }, _, random) => {
    await command('CONFIG', 'SET', 'maxmemory', '1');
    await sleep(random.whole(300, 1_500));
    await command('CONFIG', 'SET', 'maxmemory', '0');
  },
  'clock set forward': (_, victim, random) => stepped(victim, random.whole(500, 3_000)),
  'clock set back': (_, victim, random) => stepped(victim, -random.whole(500, 3_000)),
} as const satisfies Record<string, (scene: Scene, victim: Victim, random: Random) => Promise<void>>;

export type FaultKind = keyof typeof FAULTS;
export const FAULT_KINDS = Object.keys(FAULTS) as FaultKind[];

/** The wall clock of one process is wrong for a while. */
async function stepped(victim: Victim, step: number): Promise<void> {
  victim.send({ step });
  await sleep(2_000);
  victim.send({ step: -step });
}

/** One fault after the other for `ms`, with time for work in between; of one seed the same for every library. */
export async function inflict(scene: Scene, seed: number, ms: number): Promise<number> {
  const random = new Random(seed);
  const end = sharedNow() + ms;
  let count = 0;
  let bag: FaultKind[] = [];
  while (sharedNow() < end) {
    if (bag.length === 0) bag = random.shuffled(FAULT_KINDS);
    const kind = bag.pop() as FaultKind;
    const own = random.fork();
    await FAULTS[kind](scene, random.pick(scene.victims), own);
    count++;
    await sleep(random.whole(100, 600));
  }
  return count;
}
