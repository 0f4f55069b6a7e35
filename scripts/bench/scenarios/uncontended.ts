import { sum } from 'simple-statistics';
import { quantile } from '../acquisitions';
import type { Measurement } from '../running-candidate';
import { type Figures, librariesAnd, metric, type Scenario } from './scenario';
import { MANY_CALLERS, ONE_CALLER, quickWarmUp } from './warm-up';

/** Where wall time is noisy, the CPU time is the figure that counts. */
export const cycleMetrics = [
  metric('p50', 'p50', 'µs'),
  metric('p99', 'p99', 'µs'),
  metric('client', 'client CPU for each', 'µs'),
  metric('server', 'server CPU for each', 'µs'),
];

export function cycleFigures({ observations, requests, serverCpu, seconds }: Measurement): Figures {
  const sorted = observations.flatMap(({ durations }) => durations).sort((a, b) => a - b);
  const cycles = sorted.length;
  return {
    rate: cycles / seconds,
    requests: requests / cycles,
    p50: quantile(sorted, 0.5) * 1000,
    p99: quantile(sorted, 0.99) * 1000,
    client: (sum(observations.map(({ cpu }) => cpu)) / cycles) * 1000,
    server: (serverCpu / cycles) * 1000,
  };
}

export const oneCaller: Scenario = {
  id: '1',
  title: 'Uncontended, one caller: lock and unlock',
  floor: 'floor',
  metrics: cycleMetrics,
  suits: librariesAnd('floor', 'floor-evalsha', 'observed'),
  plan: (isQuick) => ({
    loads: [{ load: 'cycles', settings: { callers: 1 } }],
    warmUp: isQuick ? quickWarmUp(400) : ONE_CALLER,
    window: isQuick ? 50 : 100,
    slices: isQuick ? 6 : 12,
  }),
  figures: cycleFigures,
};

export const manyKeys: Scenario = {
  id: '2',
  title: 'Uncontended, 100 callers on 100 keys',
  floor: 'floor-evalsha',
  metrics: [
    metric('rate', 'cycles', '/s'),
    metric('requests', 'requests for each'),
    metric('client', 'client CPU for each', 'µs'),
    metric('server', 'server CPU for each', 'µs'),
  ],
  suits: librariesAnd('floor', 'floor-evalsha'),
  plan: (isQuick) => ({
    loads: [{ load: 'cycles', settings: { callers: 100 } }],
    warmUp: isQuick ? quickWarmUp(400) : MANY_CALLERS,
    window: isQuick ? 60 : 120,
    slices: isQuick ? 6 : 12,
  }),
  figures: cycleFigures,
};
