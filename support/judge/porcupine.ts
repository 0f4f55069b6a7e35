import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Step } from './history';

const SOURCES = join(__dirname, 'porcupine');
const PROGRAM = join(__dirname, '..', '..', 'node_modules', '.cache', 'porcupine', 'judge');

/** What Porcupine says of one key. */
export interface Verdict {
  readonly key: string;
  readonly operations: number;
  /** "Unknown": it had not enough time. */
  readonly result: 'Ok' | 'Illegal' | 'Unknown';
}

export const hasGo = (): boolean => spawnSync('go', ['version']).status === 0;

let isBuilt = false;

/** Go fetches Porcupine, and builds what has changed. */
function program(): string {
  if (!isBuilt) {
    mkdirSync(join(PROGRAM, '..'), { recursive: true });
    execFileSync('go', ['build', '-o', PROGRAM, '.'], { cwd: SOURCES, stdio: ['ignore', 2, 2] });
    isBuilt = true;
  }
  return PROGRAM;
}

/** `permits`: of every semaphore. `html`: where the first key that it rejects is drawn. */
export function judgeWithPorcupine(steps: readonly Step[], permits: number, html?: string): Verdict[] {
  const folder = mkdtempSync(join(tmpdir(), 'porcupine-'));
  try {
    const history = join(folder, 'history.jsonl');
    writeFileSync(history, steps.map((step) => `${JSON.stringify(step)}\n`).join(''));
    const options = ['-permits', String(permits), ...(html === undefined ? [] : ['-html', html])];
    const output = execFileSync(program(), [...options, history], { encoding: 'utf8', maxBuffer: 2 ** 26 });
    return output
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Verdict);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
