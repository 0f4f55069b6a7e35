import { librariesAnd, metric, type Scenario } from './scenario';

/** All waiters are in one process, the holder is in another. */
export const waiters: Scenario = {
  id: '5',
  title: '1,000 waiters on a held key',
  floor: 'floor-fifo',
  metrics: [
    metric('requests', 'requests', '/s', false),
    metric('client', 'client CPU', 'ms/s', false),
    metric('server', 'server CPU', 'ms/s', false),
  ],
  suits: librariesAnd('floor-fifo'),
  plan: (isQuick) => ({
    loads: [
      { load: 'holder', settings: undefined },
      { load: 'waiters', settings: { callers: 1_000 } },
    ],
    warmUp: { longest: isQuick ? 200 : 1_000 },
    window: isQuick ? 400 : 3_000,
  }),
  figures: ({ observations: [, waiting], requests, serverCpu, seconds }) => ({
    requests: requests / seconds,
    client: (waiting?.cpu ?? Number.NaN) / seconds,
    server: serverCpu / seconds,
    violations: waiting?.violations ?? 0,
  }),
};
