import { Lateness } from '../../support/lateness';

/** Processes that a measured time passes through: the test, a proxy or another worker, and the server, twice. */
const HOPS = 4;

const lateness = new Lateness();

/**
 * ms by which a busy machine may have delayed what a test has measured; close to 0 on an idle one. Tests add it to the
 * upper bound of a measured time.
 */
export function machineDelay(): number {
  return HOPS * lateness.worst;
}
