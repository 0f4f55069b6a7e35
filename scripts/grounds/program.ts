import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { track } from '../../support/grounds/children';
import { ROOT } from './folder';

const run = promisify(execFile);

/** ms, for a build or the tests of an application on a busy machine. */
const LIMIT = 240_000;

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/** What a user's command prints. Rejects with that where its exit code is not 0. */
export async function runProgram(
  command: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
  timeout = LIMIT,
): Promise<Output> {
  const [program = '', ...args] = command;
  const { JEST_WORKER_ID: _, NODE_ENV: __, NODE_OPTIONS: ___, ...own } = process.env;
  const options = { cwd, timeout, env: { ...own, NO_COLOR: '1', ...env }, maxBuffer: 1 << 26 };
  const running = run(program, args, options);
  track(running.child);
  return running.catch((error: Error & Partial<Output> & { killed?: boolean }) => {
    const said = `${error.stdout ?? ''}\n${error.stderr ?? ''}`.trim();
    throw new Error(error.killed ? `it did not end within ${timeout / 1_000} s: ${said}` : said || error.message);
  });
}

/** The block of code on a page that has these words, as it stands there. */
export function blockOf(page: string, words: string): string {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const blocks = [...text.matchAll(/^```[jt]s[^\n]*\n(.*?)^```$/gms)].map(([, code = '']) => code);
  const code = blocks.find((block) => block.includes(words));
  if (code === undefined) throw new Error(`${page} has no program with "${words}"`);
  return code;
}

/** With the address of another Redis than that of the pages. */
export function withAddress(code: string, { url, port }: { readonly url: string; readonly port: number }): string {
  return code
    .replaceAll('redis://localhost:6379', url)
    .replaceAll("host: 'localhost', port: 6379", `host: '127.0.0.1', port: ${port}`);
}

/** The lines that a program says it prints. */
export function promised(code: string): string[] {
  return [...code.matchAll(/\/\/ prints: (.*)$/gm)].map(([, line = '']) => line);
}
