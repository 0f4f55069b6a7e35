import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { compiled } from '../support/compiled';

const MAIN = join(__dirname, '../../lib/cli/main.ts');

/** The words that start the command line from its sources. */
export const COMMAND = [process.execPath, compiled(MAIN)];

/** Whether there is `script` of util-linux, which gives a program a terminal. */
export function hasScript(): boolean {
  try {
    return execFileSync('script', ['--version'], { encoding: 'utf8' }).includes('util-linux');
  } catch {
    return false;
  }
}
