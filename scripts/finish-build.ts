import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { transform } from 'esbuild';
import manifest from '../package.json';

/**
 * The last step of the build, after tsc. It makes the package a third smaller: types of files that no entry point
 * refers to are removed, and so are the comments and the indentation of the scripts. Names and files stay as they are.
 */

const ROOT = join(__dirname, '..');
const DIST = join(ROOT, 'dist');

/** The types of everything that package.json names. */
const ENTRIES = Object.values(manifest.exports).flatMap((target) =>
  typeof target === 'string' ? [] : [join(ROOT, target.types)],
);

/** The types that a reader of the entry points comes to. */
async function usedTypes(): Promise<ReadonlySet<string>> {
  const used = new Set<string>();
  const pending = [...ENTRIES];
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (used.has(file)) continue;
    used.add(file);
    const source = await readFile(file, 'utf8');
    for (const [, path] of source.matchAll(/(?:from |import\(|import )'(\.[^']*)'/g)) {
      pending.push(join(dirname(file), `${path}.d.ts`));
    }
  }
  return used;
}

async function shorten(file: string): Promise<void> {
  const { code } = await transform(await readFile(file, 'utf8'), { minifyWhitespace: true });
  await writeFile(file, code);
}

async function main(): Promise<void> {
  const used = await usedTypes();
  const files = (await readdir(DIST, { recursive: true })).map((file) => join(DIST, file));
  await Promise.all(files.filter((file) => file.endsWith('.d.ts') && !used.has(file)).map((file) => rm(file)));
  await Promise.all(files.filter((file) => file.endsWith('.js')).map(shorten));
}

void main();
