import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { readPage } from '../../../package/readme/pages';

/** The first block of code of this language on the page for other languages that has this text. */
export function blockWith(language: string, text: string): string {
  const blocks = [...readPage('docs/other-languages.md').matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  const found = blocks.find(([, of, code = '']) => of === language && code.includes(text));
  if (found === undefined) throw new Error(`docs/other-languages.md has no block of ${language} with "${text}"`);
  return found[2] as string;
}

/** A program that prints lines, and goes on when it reads one. */
export class Steps {
  readonly #child;
  readonly #lines: AsyncIterator<string>;

  constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Resolves to the next line that it prints; `undefined`: it has ended. */
  async next(): Promise<string | undefined> {
    const { value, done } = await this.#lines.next();
    return done ? undefined : value;
  }

  goOn(): void {
    this.#child.stdin.write('\n');
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}
