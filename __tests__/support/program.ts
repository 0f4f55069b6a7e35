import { type ChildProcess, spawn } from 'node:child_process';
import { until } from './until';

/** ms; a process starts and ends within this time, also on a busy machine. */
const LIMIT = 45_000;

/** A program in a process of its own, and what it prints. */
export class Program {
  readonly child: ChildProcess;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  stdout = '';
  stderr = '';

  /** `stdout`: a file. */
  constructor(command: readonly string[], env: NodeJS.ProcessEnv = {}, stdout: number | 'pipe' = 'pipe') {
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

  /** The lines that it has printed. */
  get lines(): string[] {
    return this.stdout.split('\n').slice(0, -1);
  }

  get hasExited(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Resolves when it has printed the text. */
  async prints(text: string): Promise<void> {
    await until(() => this.stdout.includes(text) || this.hasExited, { within: LIMIT });
    if (!this.stdout.includes(text)) throw new Error(`It ended before it printed "${text}": ${this.stderr}`);
  }

  /** Resolves to its lines when it has ended by itself, well. */
  async succeeds(): Promise<string[]> {
    await until(() => this.hasExited, { within: LIMIT });
    const code = await this.ended;
    if (code !== 0) throw new Error(`It ended with ${code}: ${this.stderr}`);
    return this.lines;
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await until(() => this.hasExited);
  }
}
