import { luaText } from './lua-files';

/** What names in capitals stand for: numbers, words within quotes, Lua. */
export type LuaValues = Readonly<Record<string, string | number>>;

const NAME = /\b[A-Z]+(?:_[A-Z]+)+\b/g;
const GIVEN = / (\w+)=(?:"([^"]*)"|(\S+))/g;

/**
 * `spring/acquire` is the text of lib/kinds/spring/lua/acquire.lua as Redis gets it. Comments and blank lines are gone, and
 * each name in capitals with an underscore has its value: Redis itself has no such words.
 * `-- @include common/mint FENCE_KEY=KEYS[2]` is the text of that file with the same values, and FENCE_KEY. A value with
 * spaces stands in double quotes. `textOf`: what is in a file.
 */
export function lua(name: string, values: LuaValues = {}, textOf = luaText): string {
  const [first = '', ...parts] = textOf(name).split('<<');
  let text = first;
  for (const part of parts) {
    const end = part.indexOf('>>');
    const mark = part.slice(0, end);
    const isLine = mark.startsWith('@');
    text += isLine ? included(mark.slice(1), values, textOf) : values[mark];
    text += part.slice(isLine ? end + 3 : end + 2);
  }
  return text.trimEnd();
}

/** The lines of another file. `mark`: its name, and values of its own. */
function included(mark: string, values: LuaValues, textOf: (name: string) => string): string {
  const filled = (text: string) => text.replace(NAME, (name) => String(values[name]));
  const [name = ''] = mark.split(' ', 1);
  const all = { ...values };
  for (const [, its = '', quoted, plain = ''] of mark.matchAll(GIVEN)) all[its] = filled(quoted ?? plain);
  const text = lua(filled(name), all, textOf);
  return text === '' ? '' : `${text}\n`;
}
