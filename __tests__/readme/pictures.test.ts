import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { onSite, SECTIONS } from '../../support/site-pages';
import { PAGES, ROOT, readPage } from './pages';

const PICTURES = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.svg') && !name.startsWith('growth-'));

describe('A picture', () => {
  it.each(PICTURES)('has a title, a description, and colours for both themes: %s', (name) => {
    const picture = readFileSync(join(ROOT, 'docs', name), 'utf8');
    expect(picture).toMatch(/<title id="title">[^<]{10,}<\/title>/);
    expect(picture).toMatch(/<desc id="desc">[^<]{100,}<\/desc>/);
    expect(picture).toContain('prefers-color-scheme:dark');
  });

  it.each(PICTURES)('is on a page, which says in words what it shows: %s', (name) => {
    const shown = PAGES.flatMap((page) => [
      ...readPage(page).matchAll(new RegExp(`!\\[([^\\]]*)\\]\\((?:docs/)?${name}\\)`, 'g')),
    ]);
    expect(shown).not.toEqual([]);
    for (const [, words = ''] of shown) expect(words.length).toBeGreaterThan(100);
  });

  it('of the layers names every folder of lib, and no other', () => {
    const picture = readFileSync(join(ROOT, 'docs/layers.svg'), 'utf8');
    const texts = [...picture.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
    const named = texts.join(' ').match(/[\w-]+(?=\/)/g) ?? [];
    const folders = readdirSync(join(ROOT, 'lib'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect([...named].sort()).toEqual(folders.map(({ name }) => name).sort());
  });
});

describe('The site', () => {
  it('has every page in its sidebar', () => {
    const listed = SECTIONS.flatMap(({ pages }) => pages);
    expect([...listed].sort()).toEqual([...PAGES].sort());
    expect(listed.filter((page) => onSite(page) === undefined)).toEqual([]);
  });
});
