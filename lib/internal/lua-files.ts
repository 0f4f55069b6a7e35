import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** For a bundle of sources that is made without a plugin of `support/lua-files.ts`: where `lib` is. */
declare const LIB_FOLDER: string | undefined;

const LIB = typeof LIB_FOLDER === 'string' ? LIB_FOLDER : join(__dirname, '..');

/** A line that is not sent, which may include a file; or a name that has a value. */
const MARKED = /^[ \t]*(?:-- @include (\S.*)|--.*)?\n|\b[A-Z]+(?:_[A-Z]+)+\b/gm;

/** A .lua file as `lua` reads it: without comments and blank lines, with `<<NAME>>`, and `<<@file>>` in lines of their own. */
export function luaMarked(text: string): string {
  return text.replace(MARKED, (one: string, include?: string) => {
    if (include !== undefined) return `<<@${include}>>\n`;
    return one.endsWith('\n') ? '' : `<<${one}>>`;
  });
}

/**
 * `spring/acquire`: what `lua` reads of lib/kinds/spring/lua/acquire.lua. A folder outside of `kinds` has its name below
 * `lib`. What is built has a table of all texts in the place of this module, and reads no file.
 */
export function luaText(name: string): string {
  const path = `${name.replace(/\/(?=[^/]+$)/, '/lua/')}.lua`;
  const ofKind = join(LIB, 'kinds', path);
  return luaMarked(readFileSync(existsSync(ofKind) ? ofKind : join(LIB, path), 'utf8'));
}
