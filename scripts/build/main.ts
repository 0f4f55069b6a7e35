import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bundle } from './bundle';
import { removeUnusedTypes } from './declarations';
import { ENTRIES } from './entries';

/** `npm run build`: the types by tsc, the JavaScript by rollup, into `dist`; into the folder of the argument without types. */

const ROOT = join(__dirname, '../..');
const DIST = join(ROOT, 'dist');

async function writeTypes(): Promise<void> {
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  await promisify(execFile)(tsc, ['-p', ROOT, '--emitDeclarationOnly']);
  await removeUnusedTypes(ENTRIES, DIST);
}

async function writeScripts(folder: string): Promise<void> {
  await bundle(ENTRIES, folder);
  await writeFile(join(folder, 'async-mutex.mjs'), `export { Semaphore } from 'async-mutex';\n`);
}

async function main(folder: string | undefined): Promise<void> {
  if (folder !== undefined) return writeScripts(folder);
  await rm(DIST, { recursive: true, force: true });
  await Promise.all([writeTypes(), writeScripts(DIST)]);
}

main(process.argv[2]).catch((error: unknown) => {
  const printed = error instanceof Error && 'stdout' in error ? error.stdout : error;
  console.error(printed);
  process.exitCode = 1;
});
