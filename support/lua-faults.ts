import { parse } from 'luaparse';

/** What a script of Redis finds. */
const LIBRARIES = 'redis string table math cjson bit';
const FUNCTIONS = 'tonumber tostring type pcall error ipairs pairs unpack select';
const GLOBALS = new Set(`KEYS ARGV ${LIBRARIES} ${FUNCTIONS}`.split(' '));

/** What is wrong with a script. */
export function faultOf(source: string): string | undefined {
  if (/\bundefined\b/.test(source)) return 'a name in capitals has no value';
  try {
    const { globals } = parse(source, { luaVersion: '5.1', comments: false, scope: true });
    const unknown = new Set(globals.map(({ name }) => name).filter((name) => !GLOBALS.has(name)));
    return unknown.size === 0 ? undefined : `unknown: ${[...unknown].join(', ')}`;
  } catch (error) {
    return (error as Error).message;
  }
}
