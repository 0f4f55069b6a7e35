import { everybodyAnd, metric, type Scenario } from './scenario';

/** The waiters are in one process, the holder is in another. */
export const held: Scenario = {
  id: '5',
  number: 5,
  title: '1,000 waiters on a held key',
  floor: 'floor-fifo',
  metrics: [
    metric('requests', 'requests', '/s', false),
    metric('client', 'client CPU', 'ms/s', false),
    metric('server', 'server CPU', 'ms/s', false),
  ],
  suits: everybodyAnd('floor-fifo'),
  play: (isQuick) => ({
    orders: [
      { load: 'holder', settings: undefined },
      { load: 'waiters', settings: { callers: 1_000 } },
    ],
    warmUp: isQuick ? 200 : 1_000,
    window: isQuick ? 600 : 4_000,
  }),
  figures: ({ observations: [, waiters], requests, serverCpu, seconds }) => ({
    requests: requests / seconds,
    client: (waiters?.cpu ?? Number.NaN) / seconds,
    server: serverCpu / seconds,
    violations: waiters?.violations ?? 0,
  }),
};
