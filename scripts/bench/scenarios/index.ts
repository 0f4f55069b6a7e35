import { fourProcessesEmpty, fourProcessesWorking, oneProcess } from './contended';
import { farAway } from './far-away';
import { manyLeases } from './holding';
import { memory } from './memory';
import type { Scenario } from './scenario';
import { manyKeys, oneCaller } from './uncontended';
import { held } from './waiting';

export const scenarios: readonly Scenario[] = [
  oneCaller,
  manyKeys,
  oneProcess,
  fourProcessesEmpty,
  fourProcessesWorking,
  held,
  manyLeases,
  memory,
  farAway,
];
