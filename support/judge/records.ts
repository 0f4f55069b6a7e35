import type { Access } from './exclusion';

/** What a process read from `lease.remaining`, at some moment between two readings of the shared clock. */
export interface Sample {
  readonly from: number;
  readonly to: number;
  readonly remaining: number;
}

/** How a call or a lease ended. */
export type Outcome =
  | 'unlocked'
  | 'refused'
  | 'timed out'
  | 'aborted'
  | 'unavailable'
  | 'closed'
  | 'lost'
  | 'release unknown'
  | 'unexpected';

/** Of every semaphore. */
export const PERMITS = 3;

/** One line of a worker's file. Times are ms of the clock that all processes of the machine share. */
export type WorkerRecord =
  | {
      readonly event: 'called';
      readonly call: string;
      readonly key: string;
      readonly access?: Access;
      /** How many permits of a semaphore it takes. */
      readonly permits?: number;
      /** Keys that it takes together with it. */
      readonly others: readonly string[];
      readonly what: string;
      /** ms from the grant in which nobody else may get it. */
      readonly minHold?: number | undefined;
      /** ms; of a call that replaces. */
      readonly grace?: number | undefined;
      readonly at: number;
    }
  | { readonly event: 'granted'; readonly call: string; readonly token: number | undefined; readonly sample: Sample }
  | { readonly event: 'seen' | 'unlocking'; readonly call: string; readonly sample: Sample }
  | {
      readonly event: 'lost';
      readonly call: string;
      readonly reason: string;
      /** The process that has taken it. */
      readonly by?: string | undefined;
      /** Its release has found it, these ms before the end that it was promised. */
      readonly early?: number;
      readonly at: number;
    }
  /** It has asked the holder to end early. */
  | { readonly event: 'asked'; readonly call: string; readonly isHeard: boolean; readonly at: number }
  | { readonly event: 'settled'; readonly call: string; readonly outcome: Outcome; readonly at: number }
  | { readonly event: 'violation'; readonly kind: string; readonly text: string; readonly at: number };

/** `text` ends with a complete line, or with a part of one that its process did not live to write. */
export function parseRecords(text: string): WorkerRecord[] {
  const lines = text.split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line) as WorkerRecord);
}
