import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { luaMarked } from '../lib/internal/lua-files';

const LIB = join(__dirname, '../lib');

/** The module of `lib` that reads .lua files: what is bundled has `luaTable` in its place. */
export const READS_LUA = /[/\\]internal[/\\]lua-files\.[jt]s$/;

/** The .lua files of `lib`, as paths below it. */
export function luaFiles(): string[] {
  return readdirSync(LIB, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua'))
    .sort();
}

/** A module with the texts of all .lua files in the place of that one. `changed`: changes a text first. */
export function luaTable(changed = (_path: string, text: string) => text): string {
  const entries = luaFiles().map((file) => {
    const path = join(LIB, file);
    const text = luaMarked(changed(path, readFileSync(path, 'utf8'))).trimEnd();
    return `  '${nameOf(file)}': \`${text.replaceAll(/[\\`]|\$\{/g, '\\$&')}\`,`;
  });
  return `const FILES = {\n${entries.join('\n')}\n};\n\nexport const luaText = (name) => FILES[name];\n`;
}

/** The name by which a file is read and included. */
export function nameOf(file: string): string {
  return file.replaceAll('\\', '/').replace(/^(?:kinds\/)?(.*)\/lua\/(.*)\.lua$/, '$1/$2');
}
