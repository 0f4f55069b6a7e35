import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultyProxy } from '../../../support/proxy';
import { Random } from '../../../support/random';
import { sharedNow } from '../../../support/soak/awake-clock';
import { HEALTHY } from '../../../support/soak/settings';
import type { Pair } from './pair';
import type { ToWorker } from './worker';

/** One process and the network before it. */
export interface Victim {
  readonly proxy: FaultyProxy;
  signal(signal: NodeJS.Signals): void;
  send(message: ToWorker): void;
}

export interface Scene {
  readonly pair: Pair;
  readonly victims: readonly Victim[];
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
  'server frozen': async ({ pair: { server } }, _, random) => {
    server.kill('SIGSTOP');
    await sleep(random.whole(300, 2_500));
    server.kill('SIGCONT');
  },
  'memory full': async ({ pair }, _, random) => {
    await pair.command('CONFIG', 'SET', 'maxmemory', '1');
    await sleep(random.whole(300, 1_500));
    await pair.command('CONFIG', 'SET', 'maxmemory', '0');
  },
  failover: ({ pair, victims }, _, random) =>
    pair.failOver(
      random.whole(0, 1_000),
      victims.map(({ proxy }) => proxy),
    ),
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

export interface Inflicted {
  readonly kind: FaultKind;
  readonly from: number;
  readonly to: number;
}

/** One fault after the other for `ms`, with time for work in between; of one seed the same for every library. */
export async function inflict(scene: Scene, seed: number, ms: number): Promise<Inflicted[]> {
  const random = new Random(seed);
  const end = sharedNow() + ms;
  const inflicted: Inflicted[] = [];
  let bag: FaultKind[] = [];
  while (sharedNow() < end) {
    if (bag.length === 0) bag = random.shuffled(FAULT_KINDS);
    const kind = bag.pop() as FaultKind;
    const own = random.fork();
    const from = sharedNow();
    await FAULTS[kind](scene, random.pick(scene.victims), own);
    inflicted.push({ kind, from, to: sharedNow() });
    await sleep(random.whole(100, 600));
  }
  return inflicted;
}
