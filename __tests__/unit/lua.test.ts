import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { lua } from '../../lib/internal/lua';
import { faultOf } from '../../support/lua-faults';
import { luaFiles, luaTable } from '../../support/lua-files';

/** What `lua` makes of the first file. */
function made(files: Readonly<Record<string, string>>, values = {}): string {
  return lua(Object.keys(files)[0] as string, values, (name) => files[name] as string);
}

it('A script is its file without comments and blank lines, with values for names in capitals', () => {
  const text = "-- What it does\n\nlocal A_TTL = TTL\n  -- within\n  return 'KEPT' .. KEYS[1] .. OTHER\n";
  const script = "local A_TTL = 5\n  return 'kept@' .. KEYS[1] .. OTHER";
  expect(made({ 'a/b': text }, { TTL: 5, KEPT: 'kept@' })).toBe(script);
});

it('A script has the text of the files that it includes, and of those that they include, with its values and their own', () => {
  const files = {
    'a/b': 'first()\n  -- @include KIND/c ONE=TTL TWO="1, 2"\nlast()',
    'k/c': '-- Needs ONE\n-- @include k/d ONE=THREE\nc(ONE, TWO)',
    'k/d': 'd(ONE, TTL)',
  };
  expect(made(files, { KIND: 'k', TTL: 5 })).toBe('first()\nd(THREE, 5)\nc(5, 1, 2)\nlast()');
});

it('A file of comments adds nothing to a script', () => {
  expect(made({ 'a/b': 'first()\n-- @include a/c\nlast()', 'a/c': '-- Nothing to do.\n' })).toBe('first()\nlast()');
});

it('What is built has the texts of all files, in the place of the module that reads them', () => {
  const module = { luaFile: (_: string): string | undefined => undefined };
  new Function('exports', luaTable().replace('export const luaFile', 'exports.luaFile'))(module);
  for (const file of luaFiles()) {
    const text = readFileSync(join(__dirname, '../../lib', file), 'utf8');
    const built = module.luaFile(file.replace(/^kinds\/(.*)\/lua\/(.*)\.lua$/, '$1/$2')) as string;
    const files = (read: string) => (name: string) => (name === 'this' ? read : `${name}\n`);
    expect(lua('this', {}, files(built))).toBe(lua('this', {}, files(text)));
  }
  expect(luaFiles().length).toBeGreaterThan(40);
});

it('The check of scripts finds what is no Lua, and a variable that nobody has set', () => {
  expect(faultOf("local lock = KEYS[1]\nreturn redis.call('GET', lock)")).toBeUndefined();
  expect(faultOf('return lokc')).toBe('unknown: lokc');
  expect(faultOf('return FENCE_TTL')).toBe('unknown: FENCE_TTL');
  expect(faultOf('if then')).toMatch(/^\[1:3\] /);
});
