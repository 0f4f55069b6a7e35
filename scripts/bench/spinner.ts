/**
 * Keeps a processor awake: a process of the lowest priority that is always ready to run. To wake a processor that sleeps
 * takes longer than a round trip to Redis on loopback, and whether it sleeps is a matter of chance.
 */

import { constants, setPriority } from 'node:os';

setPriority(constants.priority.PRIORITY_LOW);
process.on('disconnect', () => process.exit());
process.on('SIGINT', () => {});

/** In slices, between which the end is heard. */
function spin(): void {
  const end = performance.now() + 50;
  while (performance.now() < end);
  setImmediate(spin);
}
spin();
