import { posix } from 'node:path';

/** The pages of the site, in the order of its sidebar: the path of each in the repository. */
export const SECTIONS: readonly { readonly text: string; readonly pages: readonly string[] }[] = [
  {
    text: 'Start',
    pages: ['README.md', 'docs/get-started.md', 'docs/choose.md', 'docs/coming-from.md'],
  },
  {
    text: 'Guides',
    pages: ['docs/frameworks.md', 'docs/recipes.md', 'docs/fencing.md', 'docs/testing.md', 'docs/examples/README.md'],
  },
  {
    text: 'Other locks',
    pages: ['docs/other-locks.md', 'docs/java.md', 'docs/other-languages.md'],
  },
  {
    text: 'Running it',
    pages: ['docs/operations.md', 'docs/observability.md', 'docs/redis.md'],
  },
  {
    text: 'Reference',
    pages: ['docs/reference.md', 'docs/guarantees.md', 'docs/trust.md', 'AGENTS.md', 'CHANGELOG.md'],
  },
  {
    text: 'For contributors',
    pages: ['CONTRIBUTING.md', 'SECURITY.md', 'docs/architecture.md'],
  },
];

/** Where a file of the repository is on the site; `undefined`: it is not there. */
export function onSite(file: string): string | undefined {
  if (file === 'README.md') return 'index.md';
  if (file === 'LICENSE') return 'license.md';
  if (/^[A-Z]+\.md$/.test(file)) return file.toLowerCase();
  if (file === 'docs/examples/README.md' || file === 'docs/examples') return 'examples/index.md';
  const [, example] = /^docs\/examples\/([\w-]+)/.exec(file) ?? [];
  if (example !== undefined) return `examples/${example}.md`;
  const [, name] = /^docs\/([^/]+\.(?:md|svg|png|json|yml))$/.exec(file) ?? [];
  return name;
}

/** A page of the repository as a page of the site: links, tabs, marks of code, names of files that are pages here. */
export function forSite(file: string, text: string): string {
  return withTabs(text)
    .split(/(^```.*?^```$)/gms)
    .map((part) => (part.startsWith('```') ? part : linked(file, part)))
    .join('')
    .replace(/^```(\w+) (?:server|test|recipe|bun|before)$/gm, '```$1');
}

function linked(file: string, prose: string): string {
  const from = onSite(file) ?? '';
  const relative = (to: string) => {
    const path = posix.relative(posix.dirname(from), to);
    return path.startsWith('.') ? path : `./${path}`;
  };
  return (
    prose
      .replace(/\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)/g, (whole, target: string, anchor = '') => {
        const to = onSite(posix.normalize(posix.join(posix.dirname(file), target)));
        return to === undefined ? whole : `](${relative(to)}${anchor})`;
      })
      // A picture that is not in the npm package: where it is, its name, and what it shows.
      .replace(
        /(?:In the repository: )?`docs\/([\w-]+\.png)` \(([^)]+)\),?/g,
        (_, name: string, words: string) => `\n\n![${words}](${relative(name)})\n\n`,
      )
      // A name of a file that is no link in the npm package, since it is not in it.
      .replace(/(?<!\[)`((?:docs\/[\w/-]+(?:\.md)?|CONTRIBUTING\.md))`(?!\])/g, (whole, name: string) => {
        const to = onSite(name);
        return to?.endsWith('.md') ? `[${whole}](${relative(to)})` : whole;
      })
  );
}

/** Between two marks, each bold line and the block below it become a tab. */
function withTabs(text: string): string {
  return text.replace(/<!-- tabs -->\n(.*?)<!-- \/tabs -->/gs, (_, tabs: string) => {
    const blocks = tabs.replace(
      /^\*\*([^*\n]+)\*\*([^\n]*)\n\n```(\w+)[^\n]*\n(.*?)^```$/gms,
      (__, name: string, rest: string, language: string, code: string) => {
        const install = /`([^`]*install[^`]*|bun add[^`]*)`/.exec(rest)?.[1];
        const comment = install === undefined ? '' : `// ${install}\n`;
        return `\`\`\`${language} [${name}]\n${comment}${code}\`\`\``;
      },
    );
    return `::: code-group\n\n${blocks.trim()}\n\n:::\n`;
  });
}

/** The first heading of a page, without its marks. */
export function titleOf(text: string): string {
  return (/^# (.*)$/m.exec(text)?.[1] ?? '').replaceAll('`', '');
}

/** The first paragraph below the first heading. */
export function summaryOf(text: string): string {
  const [, after = ''] = text.split(/^# .*$/m);
  const paragraph = after.split(/\n\n+/).find((one) => /^[A-Z*"`]/.test(one.trim())) ?? '';
  return paragraph
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('\n', ' ')
    .trim();
}
