import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../random';
import { HEALTHY } from '../settings';
import type { WorkerSlot } from '../worker-slot';

type WorkerFault = (slot: WorkerSlot, random: Random) => Promise<void>;

/** What happens to one worker or to its network. Each resolves when it is over. */
export const workerFaults = {
  delay: async ({ proxy }, random) => {
    proxy.requests.delay = random.whole(0, 400);
    proxy.replies.delay = random.whole(0, 400);
    await sleep(random.whole(300, 1_500));
    proxy.delay = HEALTHY;
  },
  cut: async ({ proxy }) => proxy.reset(),
  'lost reply': async ({ proxy }) => {
    await Promise.race([proxy.loseReply(), sleep(1_000)]);
  },
  'late delivery': async ({ proxy }, random) => {
    const late = random.whole(200, 1_500);
    proxy.requests.delay = late;
    await sleep(random.whole(20, 150));
    proxy.hangUp();
    proxy.delay = HEALTHY;
    await sleep(late);
  },
  'black hole': async ({ proxy }, random) => {
    proxy.blackHole = true;
    await sleep(random.whole(100, 1_500));
    proxy.blackHole = false;
    proxy.reset(); // what was swallowed is a gap in the stream
  },
  'worker SIGSTOP': async ({ process }, random) => process.freeze(random.whole(50, 2_500)),
  'blocked loop': async ({ process }, random) => {
    const ms = random.whole(20, 1_500);
    process.block(ms);
    await sleep(ms);
  },
  'close and restart': (slot, random) => slot.restartRegistry(random.chance(0.3) ? 300 : 3_000),
  'closed client': async ({ process }, random) => {
    await process.ask({ do: 'close client', givesUp: false });
    await sleep(random.whole(0, 1_500));
    await process.ask({ do: 'connect client' });
  },
  'client gives up': async ({ process, proxy }, random) => {
    await process.ask({ do: 'close client', givesUp: true });
    proxy.reset();
    await sleep(random.whole(0, 1_500));
    await process.ask({ do: 'connect client' });
  },
  'kill -9': (slot) => slot.kill(),
} as const satisfies Record<string, WorkerFault>;

export type WorkerFaultKind = keyof typeof workerFaults;
export const WORKER_FAULTS = Object.keys(workerFaults) as WorkerFaultKind[];
