import { PAGES, readPage } from './pages';

/**
 * `server`: it runs until it gets a signal. `test`: a test file of jest. `recipe`: several processes of it run at a time.
 * `before`: it runs with another library, from which readers come; `both`: with this one too. `bun`: it runs in Bun.
 */
export type Mark = 'server' | 'test' | 'recipe' | 'before' | 'both' | 'bun';

/** Code of a page that a reader could paste into one file and run. */
export interface Program {
  readonly page: string;
  /** Of its first block. */
  readonly line: number;
  readonly code: string;
  readonly language: 'ts' | 'js';
  /** What stands behind the language, if something does: how the program runs. */
  readonly mark: Mark | undefined;
}

/** Where the pages say that Redis is, in the two ways that clients ask for. */
export const ADDRESSES = { url: 'redis://localhost:6379', parts: "host: 'localhost', port: 6379" };

/** The code with the address of another Redis. */
export function withRedis(code: string, { host, port }: { readonly host: string; readonly port: number }): string {
  return code
    .replaceAll(ADDRESSES.url, `redis://${host}:${port}`)
    .replaceAll(ADDRESSES.parts, `host: '${host}', port: ${port}`);
}

const BLOCK = /^```(?<language>ts|js)(?: (?<mark>server|test|recipe|bun|before|both))?\n(?<code>.*?)^```$/gms;

/** A block that imports something begins a program; one without imports continues the one before it on its page. */
export function programsOf(page: string): Program[] {
  const text = readPage(page);
  const programs: Program[] = [];
  for (const { index, groups } of text.matchAll(BLOCK)) {
    const code = groups?.code ?? '';
    const last = programs.at(-1);
    if (last !== undefined && !/^import /m.test(code)) {
      programs.splice(-1, 1, { ...last, code: `${last.code}\n${code}` });
    } else {
      const line = text.slice(0, index).split('\n').length;
      const language = groups?.language === 'js' ? 'js' : 'ts';
      programs.push({ page, line, code, language, mark: groups?.mark as Mark | undefined });
    }
  }
  return programs;
}

export const PROGRAMS = PAGES.flatMap(programsOf);

/** The lines that a program says it prints, in comments such as `// prints: 42`. */
export function promisedOutput({ code }: Program): string[] {
  return [...code.matchAll(/\/\/ prints: (.*)$/gm)].map(([, line]) => line as string);
}
