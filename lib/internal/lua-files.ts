import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** For a bundle of sources that is made without a plugin of `support/lua-files.ts`: where `lib` is. */
declare const LIB_FOLDER: string | undefined;

const LIB = typeof LIB_FOLDER === 'string' ? LIB_FOLDER : join(__dirname, '..');

/**
 * `spring/acquire`: the text of lib/kinds/spring/lua/acquire.lua. What is built has a table of all texts in the place
 * of this module, and reads no file.
 */
export function luaFile(name: string): string {
  return readFileSync(join(LIB, 'kinds', `${name.replace(/\/(?=[^/]+$)/, '/lua/')}.lua`), 'utf8');
}
