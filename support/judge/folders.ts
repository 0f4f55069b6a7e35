import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseRecords, type WorkerRecord } from './records';

/** The folders with a history, in this folder and below. */
export function histories(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  const below = entries.filter((entry) => entry.isDirectory()).flatMap(({ name }) => histories(join(folder, name)));
  return [...(entries.some(({ name }) => name.endsWith('.jsonl')) ? [folder] : []), ...below.sort()];
}

/** Of each process. */
export function recordsIn(folder: string): WorkerRecord[][] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  return files.map((name) => parseRecords(readFileSync(join(folder, name), 'utf8')));
}
