import { fourProcessesEmpty, fourProcessesThinking, fourProcessesWorking, oneProcess } from './contended';
import { growth } from './growth';
import { heap } from './heap';
import { heldLeases } from './held-leases';
import { severalKeys } from './multi';
import { readWrite } from './read-write';
import { remoteRedis } from './remote-redis';
import { replicated } from './replicated';
import type { Scenario } from './scenario';
import { semaphore } from './semaphore';
import { manyKeys, oneCaller } from './uncontended';
import { waiters } from './waiters';

/** In the order of their ids. The scenarios of one curve share theirs. */
export const scenarios: readonly Scenario[] = [
  oneCaller,
  manyKeys,
  oneProcess,
  fourProcessesEmpty,
  fourProcessesWorking,
  fourProcessesThinking,
  waiters,
  heldLeases,
  heap,
  remoteRedis,
  ...growth,
  replicated,
  semaphore,
  ...severalKeys,
  readWrite,
];
