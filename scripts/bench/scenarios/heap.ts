import { librariesAnd, metric, type Scenario } from './scenario';

export const heap: Scenario = {
  id: '7',
  title: 'Heap for each idle lock, held lock and waiter',
  floor: 'floor-fifo',
  metrics: [metric('idle', 'idle', 'B'), metric('held', 'held', 'B'), metric('waiting', 'waiter', 'B')],
  suits: librariesAnd('floor-fifo'),
  plan: (isQuick) => ({
    loads: [{ load: 'heap', settings: { locks: isQuick ? 1_000 : 2_000 } }],
    warmUp: { longest: 0 },
    window: 0,
  }),
  figures: ({ observations: [process] }) => process?.heap ?? {},
};
