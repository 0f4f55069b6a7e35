import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Prints how many words each page of README and docs has, and all together: what somebody has to read. Marks of Markdown
 * are no words. Fails when there are more than the limits, each of which is what it was when it was last lowered. Pages
 * for contributors do not count.
 */

const ROOT = join(__dirname, '..');
const FOR_CONTRIBUTORS = ['architecture.md'];
const WORDS = { goal: 28_000, limit: 36_500 };
const PAGES = { goal: 16, limit: 17 };

/** The bars and rules of tables, and what begins a heading or an item of a list. */
const MARKS = /^ *(#+|-|\d+\.) |(?<!\S)(\||[|:-]*---[|:-]*)(?!\S)/gm;

const names = readdirSync(join(ROOT, 'docs')).filter(
  (name) => name.endsWith('.md') && !FOR_CONTRIBUTORS.includes(name),
);
const pages = ['README.md', ...names.map((name) => `docs/${name}`)].map((page) => {
  const text = readFileSync(join(ROOT, page), 'utf8').replace(MARKS, ' ').trim();
  return { page, words: text.split(/\s+/).length };
});
const words = pages.reduce((sum, page) => sum + page.words, 0);

for (const page of pages.sort((a, b) => b.words - a.words))
  console.log(`${String(page.words).padStart(7)} ${page.page}`);
console.log(`${String(words).padStart(7)} words on ${pages.length} pages; goals: ${WORDS.goal} on ${PAGES.goal}`);
if (words > WORDS.limit || pages.length > PAGES.limit) {
  console.error(`More than ${WORDS.limit} words or ${PAGES.limit} pages.`);
  process.exitCode = 1;
}
