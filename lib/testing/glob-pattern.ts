/**
 * A character after a backslash; a set such as `[ab]`, `[a-z]`, `[^a]`; any other character, `*` and `?` among them.
 */
const PARTS = /\\(.)|\[(\^?)((?:\\.|[^\]\\])*)\]|./gsu;

/** The pattern of texts that a glob of Redis matches. */
export function globPattern(glob: string): RegExp {
  const source = glob.replace(PARTS, (part, escaped?: string, negation?: string, members?: string) => {
    if (escaped !== undefined) return literal(escaped);
    if (part === '*') return '.*';
    if (part === '?') return '.';
    if (members !== undefined) return `[${negation}${members.replace(/[[^]/g, '\\$&')}]`;
    return literal(part);
  });
  return new RegExp(`^${source}$`, 's');
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
