import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';

// Written by scripts/docs/main.ts.
const { base, groups, reference } = JSON.parse(readFileSync(join(import.meta.dirname, '../site/sidebar.json'), 'utf8'));

/** As GitHub and npm make anchors: the links of the pages have them. */
const slugify = (text) =>
  text
    .trim()
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M9 14V10a7 7 0 0 1 14 0v4" fill="none" stroke="#5672cd" stroke-width="4"/><rect x="5" y="14" width="22" height="15" rx="3" fill="#3451b2"/></svg>`;

export default defineConfig({
  title: 'redis-lock-registry',
  description: 'Distributed locks on Redis for Node.js',
  lang: 'en',
  srcDir: 'site',
  outDir: 'dist',
  base,
  lastUpdated: false,
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  markdown: { anchor: { slugify }, toc: { slugify } },
  themeConfig: {
    search: {
      provider: 'local',
      // What explains comes before the reference, which has each word many times. The browser gets the text of this function.
      options: {
        miniSearch: { searchOptions: { boostDocument: (id) => (id.includes('/api/') ? 0.2 : 1) } },
      },
    },
    nav: [
      { text: 'Get started', link: '/get-started' },
      { text: 'Reference', link: '/reference' },
      { text: 'API', link: '/api/' },
    ],
    sidebar: { '/api/': [{ text: 'API', link: '/api/' }, ...reference], '/': groups },
    outline: [2, 3],
  },
});
