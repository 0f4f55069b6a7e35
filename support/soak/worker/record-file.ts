import { openSync, writeSync } from 'node:fs';
import type { WorkerRecord } from '../../judge/records';
import { sharedNow } from '../awake-clock';

/** What this process saw. Every line is with the kernel before the process goes on, so `kill -9` loses none. */
export class RecordFile {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  write(record: WorkerRecord): void {
    writeSync(this.#file, `${JSON.stringify(record)}\n`);
  }

  violation(kind: string, text: string): void {
    this.write({ event: 'violation', kind, text, at: sharedNow() });
  }
}
