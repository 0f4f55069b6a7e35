import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseRecords, type WorkerRecord } from '../judge/records';

/** The files of all processes of a run, read on from where they were read last. */
export class RecordFolder {
  readonly #folder: string;
  readonly #read = new Map<string, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** What each process wrote since the last call. */
  readOn(): WorkerRecord[][] {
    return readdirSync(this.#folder).map((name) => {
      const text = readFileSync(join(this.#folder, name)).subarray(this.#read.get(name) ?? 0);
      // A process that was killed may have left half of a line.
      const complete = text.subarray(0, text.lastIndexOf('\n') + 1);
      this.#read.set(name, (this.#read.get(name) ?? 0) + complete.length);
      return parseRecords(complete.toString());
    });
  }
}
