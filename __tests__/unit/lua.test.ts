import { expect, it } from '@jest/globals';
import { lua } from '../../lib/internal/lua';
import { luaMarked, luaText } from '../../lib/internal/lua-files';
import { faultOf } from '../../support/lua-faults';
import { luaFiles, luaTable, nameOf } from '../../support/lua-files';

/** What `lua` makes of the first file. */
function made(files: Readonly<Record<string, string>>, values = {}): string {
  return lua(Object.keys(files)[0] as string, values, (name) => luaMarked(files[name] as string));
}

it('A script is its file without comments and blank lines, with values for names in capitals', () => {
  const text = "-- What it does\n\nlocal A = A_TTL\n  -- within\n  return 'KEPT_BY' .. KEYS[1] .. NX .. 'A_'\n";
  const script = "local A = 5\n  return 'kept@' .. KEYS[1] .. NX .. 'A_'";
  expect(made({ 'a/b': text }, { A_TTL: 5, KEPT_BY: 'kept@' })).toBe(script);
});

it('A script has the text of the files that it includes, and of those that they include, with its values and their own', () => {
  const files = {
    'a/b': 'first()\n  -- @include THIS_KIND/c ITS_ONE=A_TTL ITS_TWO="1, 2"\nlast()',
    'k/c': '-- Needs ITS_ONE\n-- @include k/d ITS_ONE=THREE\nc(ITS_ONE, ITS_TWO)',
    'k/d': 'd(ITS_ONE, A_TTL)',
  };
  expect(made(files, { THIS_KIND: 'k', A_TTL: 5 })).toBe('first()\nd(THREE, 5)\nc(5, 1, 2)\nlast()');
});

it('A file of comments adds nothing to a script', () => {
  expect(made({ 'a/b': 'first()\n-- @include a/c\nlast()', 'a/c': '-- Nothing to do.\n' })).toBe('first()\nlast()');
});

it('What is built has the texts of all files, in the place of the module that reads them', () => {
  const module = { luaText: (_: string): string | undefined => undefined };
  new Function('exports', luaTable().replace('export const luaText', 'exports.luaText'))(module);
  const names = luaFiles().map(nameOf);
  expect(names.map((name) => module.luaText(name))).toEqual(names.map((name) => luaText(name).trimEnd()));
  expect(names.length).toBeGreaterThan(40);
});

it('The check of scripts finds what is no Lua, a variable that nobody has set, and a name without a value', () => {
  expect(faultOf("local lock = KEYS[1]\nreturn redis.call('GET', lock)")).toBeUndefined();
  expect(faultOf('return lokc')).toBe('unknown: lokc');
  expect(faultOf("return 'undefined@'")).toBe('a name in capitals has no value');
  expect(faultOf('if then')).toMatch(/^\[1:3\] /);
});
