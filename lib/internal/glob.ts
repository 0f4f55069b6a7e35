/** The glob that matches nothing but this text. */
export function literally(text: string): string {
  return text.replace(/[\\*?[\]^-]/g, '\\$&');
}

/** A character after a backslash; a set such as `[ab]`, `[a-z]`, `[^a]`; any other character, `*` and `?` among them. */
const PARTS = /\\(.)|\[(\^?)((?:\\.|[^\]\\])*)\]|./gsu;

/** The pattern of the texts that a glob of Redis matches. */
export function globPattern(glob: string): RegExp {
  const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  const source = glob.replace(PARTS, (part, escaped?: string, negation?: string, members?: string) => {
    if (escaped !== undefined) return literal(escaped);
    if (part === '*') return '.*';
    if (part === '?') return '.';
    return members === undefined ? literal(part) : `[${negation}${members.replace(/[[^]/g, '\\$&')}]`;
  });
  return new RegExp(`^${source}$`, 's');
}
