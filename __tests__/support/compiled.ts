import { join, relative } from 'node:path';
import { buildSync } from 'esbuild';

const ROOT = join(__dirname, '../..');

/** Inside the project, so that the programs find its packages. */
const FOLDER = join(ROOT, 'node_modules/.cache/test-programs');

const programs = new Map<string, string>();

/**
 * The path of the script as plain JavaScript, for a process of its own: that starts in a fraction of the time that a
 * loader for TypeScript takes. It is compiled once for each test file.
 */
export function compiled(script: string): string {
  let program = programs.get(script);
  if (program === undefined) {
    // Each worker of Jest writes files of its own.
    program = join(FOLDER, String(process.pid), `${relative(ROOT, script).replace(/\W/g, '-')}.cjs`);
    buildSync({
      entryPoints: [script],
      outfile: program,
      bundle: true,
      platform: 'node',
      target: 'node20',
      packages: 'external',
      logLevel: 'warning',
      define: { LIB_FOLDER: JSON.stringify(join(ROOT, 'lib')) },
    });
    programs.set(script, program);
  }
  return program;
}
