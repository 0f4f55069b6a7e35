import type { SimulatedProcess } from '../process/simulated-process';
import type { Reply } from '../server/reply';
import type { Connection, Delays, Hearing, Network } from './connection';
import type { SimulatedClient } from './simulated-client';

export interface ClientTraits {
  readonly delays: Delays;
  readonly disableOfflineQueue: boolean;
  /** It sends again what was not answered when its connection broke, as ioredis does. */
  readonly repeats: boolean;
  /** ms between two tries to connect. */
  readonly reconnectAfter: number;
}

/** Where a simulation finds the connections of a process, to cut them. */
export interface ClientDirectory {
  readonly network: Network;
  readonly process: SimulatedProcess;
  readonly clients: Set<SimulatedClient>;
  /** Also those that were destroyed since. */
  readonly everyClient: Set<SimulatedClient>;
  /** Until when nothing can be connected, and after how many tries its clients give up. */
  outage: { readonly until: number; readonly tries: number };
  /** Of connections that are made now; `undefined`: as usual. */
  hearing: Hearing | undefined;
  has(connection: Connection): boolean;
  /** The library gives a command to its client. */
  asked(client: SimulatedClient, command: readonly string[]): void;
  /** The library makes a connection of its own. */
  duplicated(): void;
  /** A reply to a command of the library was read. */
  replied(reply: Reply): void;
  /** As that of ConnectionListener. */
  disturbed(): void;
  /** As that of ConnectionListener. */
  unheard(message: string): void;
  /** As that of ConnectionListener. */
  cameLate(command: readonly string[], after: number): void;
}
