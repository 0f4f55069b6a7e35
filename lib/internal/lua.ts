import { luaFile } from './lua-files';

/** What stands for names in capitals: numbers, words within quotes, Lua. */
export type LuaValues = Readonly<Record<string, string | number>>;

/** A line that is not sent, which may include a file; or a name. */
const REPLACED = /^[ \t]*(?:-- @include (\S+)(.*)|--.*)?\n|\b[A-Z][A-Z_]+\b/gm;
const GIVEN = /(\w+)=(?:"([^"]*)"|(\S+))/g;

/**
 * `spring/acquire` is the text of lib/kinds/spring/lua/acquire.lua as Redis gets it: names in capitals have their values, and
 * comments and blank lines are gone. `-- @include common/mint FENCE=KEYS[2]` is the text of that file with the same values,
 * and FENCE. A value with spaces stands in double quotes. `read`: what is in a file.
 */
export function lua(name: string, values: LuaValues = {}, read = luaFile): string {
  const filled = (text: string): string =>
    text.replace(REPLACED, (one: string, other?: string, given = '') => {
      if (other === undefined) return one.endsWith('\n') ? '' : String(values[one] ?? one);
      const all = { ...values };
      for (const [, its = '', quoted, plain = ''] of given.matchAll(GIVEN)) all[its] = filled(quoted ?? plain);
      const text = lua(filled(other), all, read);
      return text === '' ? '' : `${text}\n`;
    });
  return filled(read(name)).trimEnd();
}
