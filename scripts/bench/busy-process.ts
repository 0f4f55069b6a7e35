/**
 * Keeps a CPU awake: a process of the lowest priority that is always ready to run. A sleeping CPU takes longer to wake up
 * than a round trip to Redis on loopback takes, and whether it sleeps is random.
 */

import { constants, setPriority } from 'node:os';

setPriority(constants.priority.PRIORITY_LOW);
process.on('disconnect', () => process.exit());
process.on('SIGINT', () => {});

/** In slices of 50 ms, so that `disconnect` is processed. */
function spin(): void {
  const end = performance.now() + 50;
  while (performance.now() < end);
  setImmediate(spin);
}
spin();
