import type { SimulatedProcess } from '../process/simulated-process';
import type { Delays, Network } from './connection';
import type { SimulatedClient } from './simulated-client';

export interface ClientTraits {
  readonly delays: Delays;
  readonly disableOfflineQueue: boolean;
  /** ms between two tries to connect. */
  readonly reconnectAfter: number;
}

/** Where a simulation finds the connections of a process, to cut them. */
export interface ClientDirectory {
  readonly network: Network;
  readonly process: SimulatedProcess;
  readonly clients: Set<SimulatedClient>;
  /** A reply to a command of the library was read. */
  replied(): void;
}
