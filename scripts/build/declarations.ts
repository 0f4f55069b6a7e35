import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Entries } from './bundle';
import { DeclarationFile } from './declaration-file';

/** The names of each file that a reader of the entry points comes to. */
type Reached = Map<string, Set<string>>;

/** Removes what no public signature refers to from the published types: declarations, imports and files. */
export async function removeUnusedTypes(entries: Entries, folder: string): Promise<void> {
  const paths = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith('.d.ts'));
  const files = new Map<string, DeclarationFile>();
  for (const path of paths.map((path) => join(folder, path))) {
    files.set(path, new DeclarationFile(await readFile(path, 'utf8')));
  }
  const reached: Reached = new Map();
  for (const name of Object.keys(entries)) reachAll(files, join(folder, `${name}.d.ts`), reached);
  for (const [path, file] of files) {
    const names = reached.get(path);
    if (names === undefined) await rm(path);
    else await writeFile(path, file.with(names));
  }
}

function fileAt(files: ReadonlyMap<string, DeclarationFile>, path: string): DeclarationFile {
  const file = files.get(path);
  if (file === undefined) throw new Error(`No types in ${path}`);
  return file;
}

function reachAll(files: ReadonlyMap<string, DeclarationFile>, path: string, reached: Reached): void {
  const file = fileAt(files, path);
  reached.set(path, reached.get(path) ?? new Set());
  for (const name of file.names) reach(files, path, name, reached);
  for (const whole of file.wholes) reachAll(files, declarationsOf(path, whole), reached);
}

function reach(files: ReadonlyMap<string, DeclarationFile>, path: string, name: string, reached: Reached): void {
  const names = reached.get(path) ?? new Set();
  if (names.has(name)) return;
  reached.set(path, names.add(name));
  const { here, elsewhere } = fileAt(files, path).uses(name);
  for (const own of here) reach(files, path, own, reached);
  for (const source of elsewhere) {
    if (source.path.startsWith('.')) reach(files, declarationsOf(path, source.path), source.name, reached);
  }
}

function declarationsOf(path: string, imported: string): string {
  return join(dirname(path), `${imported}.d.ts`);
}
