/**
 * Removes comments, indentation, empty lines and needless spaces from the Lua in the library's templates. What is left is
 * the same script to a server: `__tests__/build` compares the two.
 */

/** A piece of source, as a parser of ESTree describes it. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

interface Template extends Node {
  /** The texts between its expressions. */
  readonly quasis: readonly Node[];
}

/** Where the library's Lua is: all templates of several lines there are Lua. */
export const HAS_LUA = /\/lib\/(protocols|redis)\//;

/** Stands for an expression of a template. No Lua has it. */
const EXPRESSION = '\0';

/**
 * A text of Lua, or a sign, with the spaces around it that are not needed. A digit before ".." would be read as a part of a
 * number, and "--" as the begin of a comment.
 */
const TEXT_OR_SIGN =
  / *('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[=~<>]=|[=<>(){}[\],+*/]|(?<!- *)-(?! *-)|(?<=[^\s\d\0] *)\.\.) */g;

/** `program`: what a parser has read of `code`. */
export function shortenLua(code: string, program: object): string {
  const pieces = templates(program).flatMap((template) => shortPieces(code, template));
  pieces.sort((a, b) => b.start - a.start);
  return pieces.reduce((short, { start, end, text }) => short.slice(0, start) + text + short.slice(end), code);
}

function templates(value: unknown): Template[] {
  if (Array.isArray(value)) return value.flatMap(templates);
  if (typeof value !== 'object' || value === null) return [];
  const own = 'type' in value && value.type === 'TemplateLiteral' ? [value as Template] : [];
  return [...own, ...Object.values(value).flatMap(templates)];
}

function shortPieces(code: string, { quasis }: Template): { start: number; end: number; text: string }[] {
  const texts = quasis.map(({ start, end }) => code.slice(start, end));
  if (!texts.some((text) => text.includes('\n'))) return [];
  const short = withoutSpaces(texts.map(withoutComments).join(EXPRESSION)).split(EXPRESSION);
  return quasis.map(({ start, end }, i) => ({ start, end, text: short[i] ?? '' }));
}

/** No Lua of the library has "--" at the begin of a line of a text, or a text of several lines. */
function withoutComments(lua: string): string {
  const [first = '', ...others] = lua.split('\n');
  if (others.length === 0) return lua;
  const lines = others.map((line, i) => (i === others.length - 1 ? line.replace(/^[ \t]+/, '') : line.trim()));
  const last = lines.pop() ?? '';
  const kept = lines.filter((line) => line !== '' && !line.startsWith('--'));
  return [first.trimEnd(), ...kept, last].join('\n');
}

function withoutSpaces(lua: string): string {
  return lua.replace(TEXT_OR_SIGN, '$1');
}
