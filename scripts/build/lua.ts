/**
 * Removes comments, indentation and empty lines from the Lua in the library's templates. What is left is the same script
 * to a server: `__tests__/build` compares the two.
 */

/** A piece of source, as a parser of ESTree describes it. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/** Where the library's Lua is: all templates of several lines there are Lua. */
export const HAS_LUA = /\/lib\/(protocols|redis)\//;

/** `program`: what a parser has read of `code`. */
export function shortenLua(code: string, program: object): string {
  const pieces = templatePieces(program).sort((a, b) => b.start - a.start);
  let shortened = code;
  for (const { start, end } of pieces) {
    const text = code.slice(start, end);
    if (text.includes('\n')) shortened = shortened.slice(0, start) + shorten(text) + shortened.slice(end);
  }
  return shortened;
}

/** The texts between the expressions of all templates. */
function templatePieces(value: unknown): Node[] {
  if (Array.isArray(value)) return value.flatMap(templatePieces);
  if (typeof value !== 'object' || value === null) return [];
  const own = 'type' in value && value.type === 'TemplateElement' ? [value as Node] : [];
  return [...own, ...Object.values(value).flatMap(templatePieces)];
}

/** No Lua of the library has "--" at the begin of a line of a text, or a text of several lines. */
function shorten(lua: string): string {
  const [first = '', ...others] = lua.split('\n');
  const lines = others.map((line, i) => (i === others.length - 1 ? line.replace(/^[ \t]+/, '') : line.trim()));
  const last = lines.pop() ?? '';
  const kept = lines.filter((line) => line !== '' && !line.startsWith('--'));
  return [first.trimEnd(), ...kept, last].join('\n');
}
