import { min, sum } from 'simple-statistics';
import { type KeyHistory, keyHistories, overfull, quantile, waits } from '../acquisitions';
import { metric, type Scenario } from './scenario';
import { quickWarmUp, SLOW_LOCKS } from './warm-up';

const PROCESSES = 4;
const READERS = 8;
const WRITERS = 2;
const CALLERS = READERS + WRITERS;
/** A writer takes as much as all callers together would as readers. */
const PERMITS = PROCESSES * CALLERS;

const SETTINGS = {
  callers: CALLERS,
  readers: READERS,
  permits: PERMITS,
  keys: 1,
  work: 5,
  workJitter: 0,
  pause: 10,
  pauseJitter: 20,
};

export const readWrite: Scenario = {
  id: '13',
  isVariant: true,
  title: `A read/write lock: ${PROCESSES} processes with ${READERS} readers and ${WRITERS} writers, 5 ms of work, 10 to 30 ms until the next request`,
  floor: undefined,
  metrics: [
    metric('reads', 'reads', '/s'),
    metric('writes', 'writes', '/s'),
    metric('requests', 'requests for each'),
    metric('readerP50', 'wait of readers, p50', 'ms'),
    metric('readerP999', 'wait of readers, p99.9', 'ms'),
    metric('writerP50', 'wait of writers, p50', 'ms'),
    metric('writerP999', 'wait of writers, p99.9', 'ms'),
    metric('client', 'client CPU for each', 'µs'),
    metric('server', 'server CPU for each', 'µs'),
  ],
  languages: ['java'],
  suits: ({ kind }) => kind === 'readWrite',
  plan(isQuick) {
    const loads = new Array(PROCESSES).fill({ load: 'callers', settings: SETTINGS });
    return isQuick ? { loads, warmUp: quickWarmUp(200), window: 800 } : { loads, warmUp: SLOW_LOCKS, window: 5_000 };
  },
  figures({ observations, requests, serverCpu, seconds }) {
    const [history = []] = keyHistories(observations, CALLERS, 1);
    const end = min(observations.map((observation) => observation.end));
    const reads = history.filter(({ weight }) => weight !== PERMITS);
    const writes = history.filter(({ weight }) => weight === PERMITS);
    const entered = (some: KeyHistory) => some.filter(({ enteredAt }) => Number.isFinite(enteredAt)).length;
    const [waitsOfReaders, waitsOfWriters] = [waits(reads, end), waits(writes, end)];
    const count = entered(history);
    return {
      reads: entered(reads) / seconds,
      writes: entered(writes) / seconds,
      requests: requests / count,
      readerP50: quantile(waitsOfReaders, 0.5),
      readerP999: quantile(waitsOfReaders, 0.999),
      writerP50: quantile(waitsOfWriters, 0.5),
      writerP999: quantile(waitsOfWriters, 0.999),
      client: (sum(observations.map(({ cpu }) => cpu)) / count) * 1000,
      server: (serverCpu / count) * 1000,
      violations: overfull(history, PERMITS) + sum(observations.map(({ violations }) => violations)),
    };
  },
};
