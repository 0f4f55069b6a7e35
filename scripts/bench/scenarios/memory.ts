import { everybodyAnd, metric, type Scenario } from './scenario';

export const memory: Scenario = {
  id: '7',
  number: 7,
  title: 'Heap for each lock: used before and idle, held, waited for',
  floor: 'floor-fifo',
  metrics: [metric('idle', 'idle', 'B'), metric('held', 'held', 'B'), metric('waiting', 'for each waiter', 'B')],
  suits: everybodyAnd('floor-fifo'),
  play: (isQuick) => ({
    orders: [{ load: 'heap', settings: { locks: isQuick ? 1_000 : 2_000 } }],
    warmUp: 0,
    window: 0,
  }),
  figures: ({ observations: [process] }) => process?.heap ?? {},
};
