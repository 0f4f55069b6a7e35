import { metric, type Scenario } from './scenario';
import { cycleFigures, cycleMetrics } from './uncontended';
import { MANY_CALLERS, quickWarmUp } from './warm-up';

const CALLERS = 20;

/** The price of `minReplicas`. */
export const replicated: Scenario = {
  id: '10',
  isVariant: true,
  title: `Uncontended, ${CALLERS} callers on ${CALLERS} keys, on a master with one replica`,
  floor: 'floor-wait',
  metrics: [metric('rate', 'cycles', '/s'), ...cycleMetrics],
  suits: ({ id, kind }) => kind === 'replicated' || ['floor-wait', 'floor-evalsha', 'spin'].includes(id),
  plan: (isQuick) => ({
    loads: [{ load: 'cycles', settings: { callers: CALLERS } }],
    warmUp: isQuick ? quickWarmUp(400) : MANY_CALLERS,
    window: isQuick ? 100 : 150,
    slices: isQuick ? 3 : 12,
    hasReplica: true,
  }),
  figures: cycleFigures,
};
