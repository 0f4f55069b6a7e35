import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { jest } from '@jest/globals';

const run = promisify(execFile);
const ROOT = path.resolve(__dirname, '../../..');

/** ms; a minute of the processor's time, on a machine that has a tenth of it to give. */
const LIMIT = 600_000;
jest.setTimeout(LIMIT);

/** In a process of its own: the simulation ends turns of the event loop by itself, and Jest has a context of its own. */
export async function simulate(...args: string[]): Promise<string> {
  const command = ['-r', 'esbuild-register', 'scripts/simulate.ts', ...args];
  const { stdout } = await run(process.execPath, command, { cwd: ROOT, maxBuffer: 1e8, timeout: LIMIT });
  return stdout;
}
