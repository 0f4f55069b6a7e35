import { type ChildProcess, spawn } from 'node:child_process';
import { until } from '../support/until';

/** ms; a process starts and ends within this time, also on a busy machine. */
const LIMIT = 30_000;

/** A recipe in a process of its own. */
export class RecipeProcess {
  errors = '';
  readonly #child: ChildProcess;
  #output = '';

  constructor(script: string, env: Readonly<Record<string, string>> = {}) {
    this.#child = spawn(process.execPath, [script], { env: { ...process.env, ...env } });
    this.#child.stdout?.on('data', (text) => {
      this.#output += text;
    });
    this.#child.stderr?.on('data', (text) => {
      this.errors += text;
    });
  }

  /** The lines that it has printed. */
  get lines(): string[] {
    return this.#output.split('\n').slice(0, -1);
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Resolves when it has printed the line. */
  async prints(line: string): Promise<void> {
    await until(() => this.lines.includes(line), { within: LIMIT });
  }

  /** Resolves to its lines when it has ended by itself, well. */
  async ends(): Promise<string[]> {
    await until(() => this.hasExited, { within: LIMIT });
    if (this.#child.exitCode !== 0) throw new Error(`It ended with ${this.#child.exitCode}: ${this.errors}`);
    return this.lines;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await until(() => this.hasExited);
  }
}
