import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { forSite, onSite, SECTIONS, summaryOf, titleOf } from './site-pages';

/**
 * A list of the pages for language models: llmstxt.org. The site has one of all its pages, and the package `llms.txt`,
 * of those that are in it: `node -r esbuild-register support/llms.ts` writes that one.
 */

const ROOT = join(__dirname, '..');
const FILE = join(ROOT, 'llms.txt');

/** Only in the repository. */
const NOT_PACKED = ['CONTRIBUTING.md', 'docs/architecture.md', 'docs/examples/README.md'];

/** `linkOf`: where a page is, for the reader of this list; `undefined`: it is left out. */
export function listOfPages(linkOf: (file: string) => string | undefined, more: readonly string[] = []): string {
  const textOf = (file: string) => forSite(file, readFileSync(join(ROOT, file), 'utf8'));
  const readme = textOf('README.md');
  const sections = SECTIONS.flatMap(({ text, pages }) => {
    const lines = pages.flatMap((file) => {
      const link = linkOf(file);
      return link === undefined ? [] : [`- [${titleOf(textOf(file))}](${link}): ${summaryOf(textOf(file))}`];
    });
    return lines.length === 0 ? [] : [`\n## ${text}\n`, ...lines];
  });
  return `# ${titleOf(readme)}\n\n> ${summaryOf(readme)}\n${[...sections, ...more].join('\n')}\n`;
}

/** What `llms.txt` says. */
export function packedList(): string {
  return listOfPages((file) => (NOT_PACKED.includes(file) ? undefined : file));
}

export const siteList = (): string =>
  listOfPages(onSite, ['- [API](api/index.md): the reference, from the comments of the code']);

if (require.main === module) writeFileSync(FILE, packedList());
