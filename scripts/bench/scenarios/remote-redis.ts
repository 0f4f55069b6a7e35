import { sum } from 'simple-statistics';
import { handOvers, keyHistories, overlaps, quantile } from '../acquisitions';
import { librariesAnd, metric, type Scenario } from './scenario';
import { quickWarmUp, type WarmUp } from './warm-up';

/** ms in each direction */
const DELAY = 10;

/** ms that the next holder has waited at least. By then every library has subscribed or polls regularly. */
const MINIMUM_WAIT = 100;

/** Two processes with one caller for each key, so that every hand-over goes to the other process. */
const CALLERS = { callers: 20, keys: 20, work: 500, workJitter: 250, pause: 350 };

/** The network takes nearly all of the time, whether code is compiled or not. */
const WARM_UP: WarmUp = { longest: 1_000, settling: 1_000 };

export const remoteRedis: Scenario = {
  id: '8',
  title: `Hand-over between two processes, Redis ${DELAY} ms away`,
  floor: undefined,
  metrics: [
    metric('pings', 'hand-over in PINGs', '', false),
    metric('handOver', 'hand-over', 'ms', false),
    metric('ping', 'PING', 'ms', false),
  ],
  suits: librariesAnd('floor-fifo'),
  plan: (isQuick) => {
    const load = { load: 'callers', settings: CALLERS } as const;
    return {
      loads: [load, load],
      warmUp: isQuick ? quickWarmUp(200) : WARM_UP,
      window: isQuick ? 500 : 3_500,
      delay: DELAY,
    };
  },
  figures({ observations, ping }) {
    const ofKeys = keyHistories(observations, CALLERS.callers, CALLERS.keys);
    const latencies = ofKeys.flatMap((history) => handOvers(history, MINIMUM_WAIT)).sort((a, b) => a - b);
    const handOver = quantile(latencies, 0.5);
    return { pings: handOver / ping, handOver, ping, violations: sum(ofKeys.map(overlaps)) };
  },
};
