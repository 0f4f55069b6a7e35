import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import packageJson from '../../package.json';
import { missingFields, OWNERS_FIELDS } from '../../support/release-fields';
import { codeSpans, ROOT, tableBelow } from './pages';

const GITHUB = join(ROOT, '.github');
const WORKFLOWS = readdirSync(join(GITHUB, 'workflows'));
const read = (file: string) => readFileSync(join(GITHUB, file), 'utf8');

describe('Before the first release', () => {
  it('CONTRIBUTING.md names the fields that `npm run check` warns of, and no other', () => {
    const named = tableBelow('CONTRIBUTING.md', 'Before the first release').flatMap(([cell = '']) => codeSpans(cell));
    expect(named).toEqual([...OWNERS_FIELDS]);
  });

  it('a field that is missing is reported, and none that is there', () => {
    expect(missingFields({})).toEqual([...OWNERS_FIELDS]);
    const complete = Object.fromEntries(OWNERS_FIELDS.map((name) => [name, 'there']));
    expect(missingFields(complete)).toEqual([]);
  });
});

describe('.github', () => {
  it.each(WORKFLOWS)('workflows/%s runs only commands that there are', (name) => {
    const text = read(`workflows/${name}`);
    const scripts = [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, script]) => script as string);
    expect(scripts.filter((script) => !(script in packageJson.scripts))).toEqual([]);
    for (const [, file = ''] of text.matchAll(/run: (\.[\w/.]+)/g)) expect(existsSync(join(ROOT, file))).toBe(true);
  });

  it.each(WORKFLOWS)('workflows/%s has no right but to read, unless a job says so', (name) => {
    expect(read(`workflows/${name}`)).toMatch(/^permissions:\n {2}contents: read$/m);
  });

  it('has links that lead somewhere', () => {
    for (const page of ['SECURITY.md', 'CODE_OF_CONDUCT.md']) {
      const links = [...read(page).matchAll(/\]\((\.\.[^)#]*)/g)].map(([, path]) => path as string);
      expect(links.filter((path) => !existsSync(join(GITHUB, path)))).toEqual([]);
    }
  });

  it('lets dependabot look at every folder that has packages of its own', () => {
    const folders = ['scripts', 'support'].flatMap((parent) =>
      readdirSync(join(ROOT, parent))
        .filter((name) => existsSync(join(ROOT, parent, name, 'package.json')))
        .map((name) => `/${parent}/${name}`),
    );
    expect(folders.filter((folder) => !read('dependabot.yml').includes(folder))).toEqual([]);
  });
});
