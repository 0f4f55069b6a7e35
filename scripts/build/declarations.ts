import { readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Entries } from './bundle';

/** The types that a reader of the entry points comes to. */
async function usedTypes(entries: Entries, folder: string): Promise<ReadonlySet<string>> {
  const used = new Set<string>();
  const pending = Object.keys(entries).map((name) => join(folder, `${name}.d.ts`));
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

/** Removes the types of files that no entry point refers to. */
export async function removeUnusedTypes(entries: Entries, folder: string): Promise<void> {
  const used = await usedTypes(entries, folder);
  const files = (await readdir(folder, { recursive: true })).map((file) => join(folder, file));
  await Promise.all(files.filter((file) => file.endsWith('.d.ts') && !used.has(file)).map((file) => rm(file)));
}
