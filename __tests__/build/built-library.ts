import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = join(__dirname, '../..');

/** For a process that understands TypeScript. */
export const TYPESCRIPT = ['-r', require.resolve('esbuild-register')];

/** The JavaScript of the package, built from the sources of now, in a folder of the test's own. */
export class BuiltLibrary {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Inside the project, so that it finds its packages. */
  static async create(name: string): Promise<BuiltLibrary> {
    const library = new BuiltLibrary(join(__dirname, '.built', name));
    await library.remove();
    await run(process.execPath, [...TYPESCRIPT, join(ROOT, 'scripts/build/main.ts'), library.path], { cwd: ROOT });
    return library;
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }
}

/** What a program prints as JSON, in a process of its own. */
export async function printedBy(program: string, options: readonly string[] = []): Promise<unknown> {
  const { stdout } = await run(process.execPath, [...options, '-e', program], { cwd: ROOT });
  return JSON.parse(stdout);
}
