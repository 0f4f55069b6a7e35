import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { compiled } from '../../support/compiled';
import { Program } from '../../support/program';

const MAIN = join(__dirname, '../../../lib/tools/cli/main.ts');

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

/** What a command that ends by itself came to. `main`: the words that start another program than that of the sources. */
export async function ask(args: readonly string[], env: NodeJS.ProcessEnv = {}, main = COMMAND) {
  const asked = new Program([...main, ...args], env);
  const exitCode = await asked.ended;
  return { exitCode, stdout: asked.stdout, stderr: asked.stderr };
}

/** Of the lines of JSON that a command printed. */
export function linesOf({ stdout }: { stdout: string }) {
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line));
}
