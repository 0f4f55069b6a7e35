import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LIB = join(__dirname, '../lib');

/** The module of `lib` that reads .lua files: what is bundled has `luaTable` in its place. */
export const READS_LUA = /[/\\]internal[/\\]lua-files\.[jt]s$/;

/** The .lua files of `lib`, as paths below it. */
export function luaFiles(): string[] {
  return readdirSync(LIB, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua'))
    .sort();
}

/** A module with the texts of all .lua files, without their comments. `changed`: changes a text first. */
export function luaTable(changed = (text: string) => text): string {
  const entries = luaFiles().map((file) => {
    const text = changed(readFileSync(join(LIB, file), 'utf8'));
    const sent = text.replaceAll(/^[ \t]*(--(?! @include).*)?\n/gm, '');
    const name = file.replaceAll('\\', '/').replace(/^kinds\/(.*)\/lua\/(.*)\.lua$/, '$1/$2');
    return `  '${name}': \`${sent.replaceAll(/[\\`]|\$\{/g, '\\$&')}\`,`;
  });
  return `const FILES = {\n${entries.join('\n')}\n};\n\nexport const luaFile = (name) => FILES[name];\n`;
}
