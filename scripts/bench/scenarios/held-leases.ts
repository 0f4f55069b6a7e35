import { librariesAnd, metric, type Scenario } from './scenario';

/** ms; redlock-universal does not work with much less. */
const TTL = 1_500;

/** A library that cannot renew a lock fails, and has no figures. */
export const heldLeases: Scenario = {
  id: '6',
  title: `1,000 held locks with a ttl of ${TTL / 1000} s that the library renews`,
  floor: 'floor',
  metrics: [
    metric('requests', 'requests', '/s'),
    metric('client', 'client CPU', 'ms/s'),
    metric('server', 'server CPU', 'ms/s'),
    metric('lost', 'locks lost', '', false),
  ],
  suits: librariesAnd('floor'),
  plan: (isQuick) => ({
    loads: [{ load: 'leases', settings: { keys: 1_000 } }],
    // Every lock is renewed once, so that MONITOR sees the commands of a renewal.
    warmUp: { longest: TTL },
    monitoring: TTL,
    window: isQuick ? TTL / 2 : 3 * TTL,
    ttl: TTL,
  }),
  figures: ({ observations: [holder], requests, serverCpu, seconds, keysLost }) => ({
    requests: requests / seconds,
    client: (holder?.cpu ?? Number.NaN) / seconds,
    server: serverCpu / seconds,
    lost: keysLost,
  }),
};
