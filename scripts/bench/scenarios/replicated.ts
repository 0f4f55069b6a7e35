import { sum } from 'simple-statistics';
import { quantile } from '../acquisitions';
import { metric, type Scenario } from './scenario';

const CALLERS = 20;

/** The price of `minReplicas`. */
export const replicated: Scenario = {
  id: '10',
  title: `Uncontended, ${CALLERS} callers on ${CALLERS} keys, on a master with one replica`,
  floor: 'floor-wait',
  metrics: [metric('rate', 'cycles', '/s'), metric('p50', 'p50', 'µs'), metric('p99', 'p99', 'µs')],
  suits: ({ id, kind }) => kind === 'replicated' || ['floor-wait', 'floor-evalsha', 'spin'].includes(id),
  plan: (isQuick) => ({
    loads: [{ load: 'cycles', settings: { callers: CALLERS } }],
    warmUp: isQuick ? 400 : 2_000,
    window: isQuick ? 100 : 150,
    slices: isQuick ? 3 : 12,
    hasReplica: true,
  }),
  figures({ observations, seconds }) {
    const sorted = observations.flatMap(({ durations }) => durations).sort((a, b) => a - b);
    const cycles = sum(observations.map(({ durations }) => durations.length));
    return { rate: cycles / seconds, p50: quantile(sorted, 0.5) * 1000, p99: quantile(sorted, 0.99) * 1000 };
  },
};
