import { everybodyAnd, metric, type Scenario } from './scenario';

/** ms; redlock-universal does not bear much less. */
const TTL = 1_500;

/** A library that cannot keep a lock alive says so, and has no figures. */
export const manyLeases: Scenario = {
  id: '6',
  number: 6,
  title: `1,000 held locks with a ttl of ${TTL / 1000} s that the library keeps alive`,
  floor: 'floor',
  metrics: [
    metric('requests', 'requests', '/s'),
    metric('client', 'client CPU', 'ms/s'),
    metric('server', 'server CPU', 'ms/s'),
    metric('lost', 'locks lost', '', false),
  ],
  suits: everybodyAnd('floor'),
  play: (isQuick) => ({
    orders: [{ load: 'leases', settings: { keys: 1_000 } }],
    // Every lock is renewed once by then, so that it was seen how.
    warmUp: TTL,
    learning: TTL,
    window: isQuick ? 1_000 : 6 * TTL,
    ttl: TTL,
  }),
  figures: ({ observations: [holder], requests, serverCpu, seconds, keysLost }) => ({
    requests: requests / seconds,
    client: (holder?.cpu ?? Number.NaN) / seconds,
    server: serverCpu / seconds,
    lost: keysLost,
  }),
};
