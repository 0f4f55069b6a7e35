import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
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

/** A process of `redis-locks`, or of another program. */
export class CliProcess {
  readonly child: ChildProcess;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  stdout = '';
  stderr = '';

  /** `stdout`: a file. */
  constructor(command: readonly string[], env: NodeJS.ProcessEnv, stdout: number | 'pipe' = 'pipe') {
    const [program = '', ...args] = command;
    this.child = spawn(program, args, { stdio: ['pipe', stdout, 'pipe'], env: { ...process.env, ...env } });
    this.child.stdout?.on('data', (data) => {
      this.stdout += data;
    });
    this.child.stderr?.on('data', (data) => {
      this.stderr += data;
    });
    this.ended = new Promise((resolve) => this.child.on('close', (code, signal) => resolve(code ?? signal)));
  }
}
