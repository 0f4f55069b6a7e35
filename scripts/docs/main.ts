import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { siteList } from '../../support/llms';
import { installLockedPackages } from '../../support/npm-install';
import { forSite, onSite, SECTIONS, titleOf } from '../../support/site-pages';
import { BASE, makeRelative, namesBase } from './base';

/**
 * `npm run docs`: the site, in scripts/docs/dist. Its pages are those of the repository, with a reference that TypeDoc
 * makes of the comments in lib. It can be served from any path, by any server of files.
 */
const ROOT = join(__dirname, '../..');
const SOURCE = join(__dirname, 'site');
const DIST = join(__dirname, 'dist');
const BIN = join(__dirname, 'node_modules/.bin');

const LANGUAGES: Readonly<Record<string, string>> = { mjs: 'js', cjs: 'js', js: 'jsx', ts: 'ts', json: 'json' };

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function write(file: string, text: string): void {
  const path = join(SOURCE, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function run(command: string, args: string[]): void {
  const { status } = spawnSync(join(BIN, command), args, { cwd: __dirname, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} failed; its output is above`);
}

/** A page for each example: all its files. */
function examplePage(name: string): string {
  const folder = join(ROOT, 'docs/examples', name);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => !file.includes('node_modules') && /\.\w+$/.test(file))
    .sort((a, b) => Number(/test|json$/.test(a)) - Number(/test|json$/.test(b)));
  const blocks = files.map((file) => {
    const language = LANGUAGES[posix.extname(file).slice(1)] ?? '';
    return `## ${file}\n\n\`\`\`${language}\n${readFileSync(join(folder, file), 'utf8')}\`\`\``;
  });
  return `# ${name}\n\nAn [example](./index.md) that a test runs.\n\n${blocks.join('\n\n')}\n`;
}

installLockedPackages(__dirname, 'Installing what makes the site into scripts/docs/node_modules, once …');
rmSync(SOURCE, { recursive: true, force: true });
rmSync(DIST, { recursive: true, force: true });

// Every page is in a section: __tests__/package/readme/reference.test.ts.
const listed = SECTIONS.flatMap(({ pages }) => pages);
const texts = new Map(listed.map((file) => [file, forSite(file, read(file))]));
for (const [file, text] of texts) write(onSite(file) as string, text);
write('license.md', `# License\n\n\`\`\`\n${read('LICENSE')}\`\`\`\n`);
for (const { name } of readdirSync(join(ROOT, 'docs/examples'), { withFileTypes: true }).filter((entry) =>
  entry.isDirectory(),
)) {
  write(`examples/${name}.md`, examplePage(name));
}
for (const name of readdirSync(join(ROOT, 'docs')).filter((one) => /\.(svg|png|json|yml)$/.test(one))) {
  cpSync(join(ROOT, 'docs', name), join(SOURCE, name));
  // What no page shows, but links to.
  if (/\.(json|yml)$/.test(name)) cpSync(join(ROOT, 'docs', name), join(SOURCE, 'public', name));
}

run('typedoc', ['--options', 'typedoc.json']);

const groups = SECTIONS.map(({ text, pages }) => ({
  text,
  items: pages.map((file) => {
    const title = file === 'README.md' ? 'Overview' : titleOf(texts.get(file) ?? '');
    return { text: title, link: `/${(onSite(file) ?? '').replace(/(index)?\.md$/, '')}` };
  }),
}));
/** The entry points, by their place in `lib`, the main one first. */
const entries = readdirSync(join(SOURCE, 'api'), { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('/index.md'))
  .map(posix.dirname)
  .sort((a, b) => Number(b === 'index') - Number(a === 'index'));
const imported = (entry: string) =>
  entry === 'index' ? 'redis-lock-registry' : `redis-lock-registry/${posix.basename(entry)}`;
const reference = entries.map((entry) => ({
  text: imported(entry),
  link: `/api/${entry}/`,
  collapsed: false,
  items: readdirSync(join(SOURCE, 'api', entry), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md') && file !== 'index.md')
    .map((file) => file.replaceAll('\\', '/').replace(/\.md$/, ''))
    .sort((a, b) => posix.basename(a).localeCompare(posix.basename(b)))
    .map((file) => ({ text: posix.basename(file), link: `/api/${entry}/${file}` })),
}));
for (const file of ['index.md', ...entries.map((entry) => `${entry}/index.md`)]) {
  const text = readFileSync(join(SOURCE, 'api', file), 'utf8');
  write(
    `api/${file}`,
    text
      .replace(
        /^(- )\[([\w/-]+)\]\(\2\/index\.md\)/gm,
        (_, dash, entry) => `${dash}[${imported(entry)}](${entry}/index.md)`,
      )
      .replace(/^# ([\w/-]+)$/m, (whole, entry) => (entries.includes(entry) ? `# ${imported(entry)}` : whole)),
  );
}
write('sidebar.json', JSON.stringify({ base: BASE, groups, reference }));

run('vitepress', ['build', '.']);

// Markdown beside each page, and a list of it for language models: llmstxt.org.
for (const file of readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((one) => one.endsWith('.md'))) {
  cpSync(join(SOURCE, file), join(DIST, file));
}
writeFileSync(join(DIST, 'llms.txt'), siteList());

makeRelative(DIST, __dirname);
const left = namesBase(DIST);
if (left.length > 0 || !existsSync(join(DIST, 'index.html')))
  throw new Error(`The base is left in: ${left.join(', ')}`);
console.log('The site is in scripts/docs/dist; any server of files will do, from any path.');
