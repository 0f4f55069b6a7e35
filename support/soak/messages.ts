import type { LockType } from '../../lib';
import type { RedisAddress } from '../redis';
import type { SoakExtra, SoakType } from './settings';
import type { SocketAddress } from './worker/session';

/** What a worker process gets in its environment. */
export interface WorkerSettings {
  /** Unique among all processes of a run. */
  readonly name: string;
  readonly address: SocketAddress;
  /** Of a server that it gets messages from. */
  readonly listensAt?: RedisAddress;
  /** The address is that of a node of a cluster. */
  readonly isCluster: boolean;
  readonly extras: readonly SoakExtra[];
  readonly type: SoakType;
  readonly lockType: LockType;
  readonly seed: number;
  readonly recordFile: string;
}

/** What the soak asks of a worker. Each command has one answer, but for `block`. */
export type Command =
  | { readonly do: 'pause' }
  | { readonly do: 'resume' }
  | { readonly do: 'finish' }
  | { readonly do: 'block'; readonly ms: number }
  /** `givesUp`: only when its connection breaks. */
  | { readonly do: 'close client'; readonly givesUp: boolean }
  | { readonly do: 'connect client' }
  | { readonly do: 'restart'; readonly closeTimeout: number }
  | { readonly do: 'busy'; readonly key: string; readonly ms: number }
  | { readonly do: 'progress'; readonly keys: readonly string[]; readonly within: number };

export type CommandTo<Do extends Command['do']> = Extract<Command, { readonly do: Do }>;

export type Answer =
  | { readonly done: 'start' }
  /** `memory`: bytes that are resident. */
  | { readonly done: 'pause'; readonly memory: number }
  | { readonly done: 'resume' }
  | { readonly done: 'finish' }
  | { readonly done: 'close client' }
  | { readonly done: 'connect client' }
  /** The keys whose leases `close` gave up: they stay in Redis until their ttl ends. */
  | { readonly done: 'restart'; readonly closedKeys: readonly string[] }
  /** `longest`: ms without a turn. */
  | { readonly done: 'busy'; readonly longest: number }
  | { readonly done: 'progress'; readonly failures: readonly string[] };

export type AnswerTo<Done extends Answer['done']> = Extract<Answer, { readonly done: Done }>;
