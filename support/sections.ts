/**
 * Replaces the section of a Markdown page that begins with the same heading. Without one it is added, before another
 * heading or at the end.
 */
export function withSection(page: string, section: string, before = /(?!)/): string {
  const [heading = ''] = section.split('\n', 1);
  const at = page.search(before);
  const end = at < 0 ? page.length : at;
  const old = findSection(page, heading) ?? { start: end, end };
  const pieces = [page.slice(0, old.start), section, page.slice(old.end)].map((piece) => piece.trim());
  return `${pieces.filter((piece) => piece !== '').join('\n\n')}\n`;
}

/** The section that begins with a heading, with its heading and all below it. */
export function sectionOf(page: string, heading: string): string | undefined {
  const found = findSection(page, heading);
  return found && page.slice(found.start, found.end).trimEnd();
}

function findSection(page: string, heading: string): { start: number; end: number } | undefined {
  const start = page.startsWith(`${heading}\n`) ? 0 : page.indexOf(`\n${heading}\n`) + 1;
  if (start === 0 && !page.startsWith(`${heading}\n`)) return undefined;
  const level = heading.search(/[^#]/);
  const next = page.slice(start + heading.length).search(new RegExp(`^#{1,${level}} `, 'm'));
  return { start, end: next < 0 ? page.length : start + heading.length + next };
}
