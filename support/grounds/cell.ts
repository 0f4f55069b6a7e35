/** What a cell saw of one thing that it looked at. */
export interface Check {
  readonly what: string;
  /** Undefined: it was as it should be. */
  readonly fault?: string;
}

/** The pages' tables, each of which has the cells of one or more of these. */
export type Ground = 'runtime' | 'worker' | 'server' | 'bundler' | 'typescript' | 'runner' | 'framework';

/** One thing that is run: a pair of a runtime and a client, a server, a bundler. */
export interface Cell {
  /** Words with slashes between them, by which it is chosen: `deno/ioredis-6`. */
  readonly name: string;
  readonly ground: Ground;
  /** What it is for, for a table: `Deno 2.9.6`. */
  readonly title: string;
  /** With what: a client, a runtime. */
  readonly through: string;
  /** ms after which it has failed. */
  readonly limit: number;
  /**
   * Resolves to a better title where what was run has said what it is. Rejects where it cannot go on: with `NotToBeHad`
   * where something that it needs is not there.
   */
  run(report: Report): Promise<string | undefined>;
}

export type Report = (check: Check) => void;

/** Something that a cell needs cannot be had on this machine. The message says why. */
export class NotToBeHad extends Error {
  override readonly name = 'NotToBeHad';
}

/** Runs one check: it is as it should be if `look` resolves. */
export async function check(report: Report, what: string, look: () => unknown): Promise<void> {
  try {
    await look();
    report({ what });
  } catch (error) {
    if (error instanceof NotToBeHad) throw error;
    report({ what, fault: error instanceof Error ? error.message : String(error) });
  }
}

/** Whether one of the words chooses the cell: `deno` and `node-24` do, and `node` for every Node. */
export function isChosen({ name, ground }: Cell, words: readonly string[]): boolean {
  const parts = [name, ground, ...name.split('/')];
  return words.length === 0 || words.some((word) => parts.some((part) => part === word || part.startsWith(`${word}-`)));
}
