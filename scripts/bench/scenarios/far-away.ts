import { sum } from 'simple-statistics';
import { handOvers, intrusions, quantile, sequences } from '../passages';
import { everybodyAnd, metric, type Scenario } from './scenario';

/** ms each way */
const DELAY = 10;

/** ms that the next holder has waited at least: by then every library has settled down to it. */
const SETTLED = 100;

/** One caller for each key in each of two processes, who take turns: every lock passes from process to process. */
const CALLERS = { callers: 20, keys: 20, work: 500, workJitter: 250, pause: 350 };

export const farAway: Scenario = {
  id: '8',
  number: 8,
  title: `Hand-over between two processes, Redis ${DELAY} ms away`,
  floor: undefined,
  metrics: [
    metric('pings', 'hand-over in PINGs', '', false),
    metric('handOver', 'hand-over', 'ms', false),
    metric('ping', 'a PING', 'ms', false),
  ],
  suits: everybodyAnd('floor-fifo'),
  play: (isQuick) => {
    const order = { load: 'callers', settings: CALLERS } as const;
    return { orders: [order, order], warmUp: isQuick ? 200 : 500, window: isQuick ? 800 : 3_500, delay: DELAY };
  },
  figures({ observations, ping }) {
    const ofKeys = sequences(observations, CALLERS.callers, CALLERS.keys);
    const latencies = ofKeys.flatMap((sequence) => handOvers(sequence, SETTLED)).sort((a, b) => a - b);
    const handOver = quantile(latencies, 0.5);
    return { pings: handOver / ping, handOver, ping, violations: sum(ofKeys.map(intrusions)) };
  },
};
