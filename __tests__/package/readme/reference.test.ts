import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import * as library from '../../../lib';
import packageJson from '../../../package.json';
import { packedList } from '../../../support/llms';
import { missingFields, OWNERS_FIELDS } from '../../../support/release-fields';
import { onSite, SECTIONS } from '../../../support/site-pages';
import { codeSpans, foldersOf, PAGES, prose, ROOT, readPage, SOURCES, tableBelow } from './pages';

const redis = { eval: async () => 1, evalSha: async () => 1 };

/** The message of the error that a bad option of the registry or of a call makes. */
async function refusal(registryOptions: object, callOptions: object = {}): Promise<string> {
  try {
    const registry = new library.RedisLockRegistry(redis, { registryKey: 'orders', ...registryOptions });
    await registry.obtain('order:42').lock(callOptions);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}

/** The names after "known are". */
async function knownOptions(message: Promise<string>): Promise<string[]> {
  return ((await message).split('known are ')[1] ?? '').split(', ').sort();
}

function firstCells(page: string, heading: string): string[] {
  return tableBelow(page, heading)
    .flatMap(([cell = '']) => codeSpans(cell))
    .sort();
}

/** The members of a union of literals in the sources of the library. */
function union(name: string): string[] {
  const sources = SOURCES.map(({ text }) => text).join('\n');
  const [, members = ''] = new RegExp(`type ${name} =([^;]*);`).exec(sources) ?? [];
  return [...members.matchAll(/'([^']*)'/g)].map(([, member]) => member as string).sort();
}

it('The tables of the pages name every option of a call, and no other', async () => {
  expect(firstCells('docs/reference.md', 'Options of a call')).toEqual(await knownOptions(refusal({}, { unknown: 1 })));
});

it('The tables of the pages name every option of a registry, and no other', async () => {
  expect(firstCells('docs/reference.md', 'Options of a registry')).toEqual(await knownOptions(refusal({ unknown: 1 })));
});

it('The tables of the pages name every lock type, and no other', async () => {
  const named = firstCells('README.md', 'Lock types').map((type) => type.replaceAll("'", ''));
  const known = /one of (.*), got/.exec(await refusal({ lockType: 'unknown' }))?.[1]?.split(', ');
  expect(named).toEqual(known?.sort());
});

it('The tables of the pages name every error, and no other', () => {
  const classes = Object.keys(library).filter((name) => name.endsWith('Error') && name !== 'LockError');
  expect(firstCells('docs/reference.md', 'Errors')).toEqual(classes.sort());
});

it('The tables of the pages name every code of a warning, and no other', () => {
  expect(firstCells('docs/operations.md', 'Warnings')).toEqual(union('LockWarningCode'));
});

it.each(['api/distributed-lock.ts', 'api/options.ts'])(
  'Every optional option has @default in its comment: %s',
  (file) => {
    const source = readPage(`lib/${file}`);
    const options = [...source.matchAll(/^export interface \w+Options(?: extends \w+)? {\n(.*?)^}/gms)].map(
      ([, body]) => body as string,
    );
    const documented = options.join('').split(/(?<=;\n)/);
    const without = documented.filter((text) => /^ {2}\w+\?:/m.test(text) && !text.includes(' * @default '));
    expect(documented.length).toBeGreaterThan(2);
    expect(without).toEqual([]);
  },
);

const PLACES = [
  ...tableBelow('docs/architecture.md', 'Where to look'),
  ...tableBelow('docs/architecture.md', 'Why a call rejects').map(([reason, , ...place]) => [reason, ...place]),
];

it.each(PLACES)('docs/architecture.md answers where to look: %s: %s', (_question, file = '', names = '') => {
  const sources = codeSpans(file)
    .filter((path) => path.includes('/'))
    .map((path) => readPage(`lib/${path.endsWith('.lua') ? path : `${path}.ts`}`));
  for (const name of codeSpans(names)) expect(sources.join('\n')).toMatch(new RegExp(`(?<![\\w#])${name}\\b`));
});

it('README.md has at most 130 lines', () => {
  expect(readPage('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(130);
});

describe('docs/architecture.md', () => {
  const page = readPage('docs/architecture.md');

  it('docs/architecture.md is one page, without long cells', () => {
    const cells = page.split('\n').flatMap((line) => (line.startsWith('|') ? line.split('|') : []));
    expect(page.split('\n').length).toBeLessThan(240);
    expect(cells.filter((cell) => cell.length > 200)).toEqual([]);
  });

  it('docs/architecture.md shows every folder of lib', () => {
    const names = ['', 'clients', 'kinds', 'tools'].flatMap((room) => foldersOf(room));
    expect(names.filter((name) => !new RegExp(`(^|\\s)${name}/`, 'm').test(page))).toEqual([]);
  });

  it('docs/architecture.md has every file of core on a floor above all that it imports', () => {
    const [, picture = ''] = /^ core\/.*\n([^▼]*)\n/m.exec(page) ?? [];
    // The highest comes first. What a file is for stands in brackets.
    const floors = picture
      .split('\n')
      .reverse()
      .map((line) => line.replace(/\([^)]*\)/g, '').split(/\s+/));
    const floorOf = (name: string) => floors.findIndex((names) => names.includes(name));
    const wrong = readdirSync(join(ROOT, 'lib/core')).flatMap((file) => {
      const imported = [...readPage(`lib/core/${file}`).matchAll(/from '\.\/([\w-]+)'/g)].map(([, name = '']) => name);
      const own = floorOf(file.replace('.ts', ''));
      if (own < 0) return [`${file} is on no floor`];
      return imported.filter((name) => floorOf(name) >= own).map((name) => `${file} imports ${name}`);
    });
    expect(wrong).toEqual([]);
  });

  it('docs/architecture.md names only files and folders of lib that are there', () => {
    const isPath = (code: string) => foldersOf().some((name) => code.startsWith(`${name}/`));
    const paths = codeSpans(prose('docs/architecture.md')).filter(isPath);
    expect(paths.length).toBeGreaterThan(20);
    expect(
      paths.filter((path) => !existsSync(join(ROOT, 'lib', /(\/|\.lua)$/.test(path) ? path : `${path}.ts`))),
    ).toEqual([]);
  });
});

const WORKFLOWS = readdirSync(join(ROOT, '.github/workflows')).map((name) => `.github/workflows/${name}`);

it.each([...PAGES, ...WORKFLOWS])('%s names only commands that there are', (page) => {
  const named = [...readPage(page).matchAll(/npm run ([\w:-]+)/g)].map(([, script]) => script as string);
  expect(named.filter((script) => !(script in packageJson.scripts))).toEqual([]);
});

describe('.github', () => {
  it.each(WORKFLOWS)(
    '%s runs only files that there are, and has no right but to read, unless a job says so',
    (page) => {
      const files = [...readPage(page).matchAll(/run: (\.[\w/.]+)/g)].map(([, file]) => file as string);
      expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
      expect(readPage(page)).toMatch(/^permissions:\n {2}contents: read$/m);
    },
  );

  it('.github lets dependabot look at every folder that has packages of its own', () => {
    const folders = ['scripts', 'support'].flatMap((parent) =>
      readdirSync(join(ROOT, parent))
        .filter((name) => existsSync(join(ROOT, parent, name, 'package.json')))
        .map((name) => `/${parent}/${name}`),
    );
    expect(folders.filter((folder) => !readPage('.github/dependabot.yml').includes(folder))).toEqual([]);
  });
});

it('CONTRIBUTING.md names the fields that `npm run check` warns of, and no other', () => {
  const named = tableBelow('CONTRIBUTING.md', 'Before the first release').flatMap(([cell = '']) => codeSpans(cell));
  expect(named).toEqual([...OWNERS_FIELDS]);
});

it('SECURITY.md sends reports to the repository of package.json, and says what to do while there is none', () => {
  const page = readPage('SECURITY.md');
  expect(page).toMatch(/the `repository` that package\.json names/);
  expect(page).toContain(`npm owner ls ${packageJson.name}`);
});

it('No page runs `npx redis-locks`, which may be a package of anybody, but to say so', () => {
  const wrong = PAGES.flatMap((page) => readPage(page).match(/(Don't run )?`npx (?!-p )[^`\n]*\bredis-locks\b/g) ?? []);
  expect(wrong).toEqual(["Don't run `npx redis-locks"]);
});

it('Before the first release, a field that is missing is reported, and none that is there', () => {
  expect(missingFields({})).toEqual([...OWNERS_FIELDS]);
  const complete = Object.fromEntries(OWNERS_FIELDS.map((name) => [name, 'there']));
  expect(missingFields(complete)).toEqual([]);
});

describe('README.md, by the runs in docs/redis.md,', () => {
  const [line = ''] = /The library works with .*redis\.md\)/.exec(readPage('README.md')) ?? [];
  const runs = tableBelow('docs/redis.md', 'Tested versions');
  const servers = runs.flatMap(([names = '']) => names.split(', '));

  it('README.md, by the runs in docs/redis.md, names the clients that were run, and no other', () => {
    const names = (text: string) => [...new Set(text.match(/\b(?:redis|ioredis|iovalkey|valkey-glide)\b/g))].sort();
    expect(names(line.replace('node-redis', ''))).toEqual(names(runs.map(([, , clients]) => clients).join(' ')));
  });

  it('README.md, by the runs in docs/redis.md, names the servers that were run, and nothing failed on them', () => {
    const versions = (kind: string) =>
      servers.flatMap((server) => (server.startsWith(kind) ? [Number(/ (\d+\.\d+)/.exec(server)?.[1])] : []));
    expect(line).toContain(`Redis ${Math.min(...versions('redis'))} to ${Math.floor(Math.max(...versions('redis')))}`);
    const valkey = [...new Set(versions('valkey').map(Math.floor))].sort();
    expect(line).toContain(`Valkey ${valkey.join(' and ')}`);
    expect(runs.flat().join('\n')).not.toContain('failed');
  });

  it('README.md, by the runs in docs/redis.md, says how many tests passed, on how many servers', () => {
    const [, passed] = /^([\d,]+) tests passed, 0 failed/m.exec(readPage('docs/redis.md')) ?? [];
    const count = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'][servers.length];
    expect(readPage('README.md')).toContain(`${passed} contract tests on [${count} servers]`);
  });
});

it('docs/guarantees.md has every guarantee that a test cites, and no other', () => {
  const promises = [...readPage('docs/guarantees.md').matchAll(/^## (P\d+):/gm)].map(([, promise]) => promise);
  const files = readdirSync(join(ROOT, '__tests__'), { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith('package/readme'),
  );
  const cited = files.flatMap((file) => readPage(`__tests__/${file}`).match(/\bP\d+\b(?=[ :,)])/g) ?? []);
  expect(promises.length).toBeGreaterThan(10);
  expect([...new Set(cited)].sort()).toEqual([...promises].sort());
});

describe('A picture', () => {
  const pictures = readdirSync(join(ROOT, 'docs')).filter((name) => /^(?!growth-).*\.svg$/.test(name));

  it.each(pictures)(
    'A picture has a title, a description, colours for both themes, and words on a page: %s',
    (name) => {
      const picture = readPage(`docs/${name}`);
      expect(picture).toMatch(/<title id="title">[^<]{10,}<\/title>/);
      expect(picture).toMatch(/<desc id="desc">[^<]{100,}<\/desc>/);
      expect(picture).toContain('prefers-color-scheme:dark');
      const image = new RegExp(`!\\[([^\\]]*)\\]\\((?:docs/)?${name}\\)`, 'g');
      const shown = PAGES.flatMap((page) => [...readPage(page).matchAll(image)]);
      expect(shown).not.toEqual([]);
      for (const [, words = ''] of shown) expect(words.length).toBeGreaterThan(100);
    },
  );

  it('A picture of the layers has each import of lib go down', () => {
    const rows = [...readPage('docs/layers.svg').matchAll(/class="t b">([^<]*)</g)].map(([, row = '']) => row);
    const rowOf = (path: string) => rows.findIndex((row) => row.split(/\/\s*/).includes(path.split('/')[1] ?? ''));
    const imports = SOURCES.filter(({ file }) => rowOf(file) >= 0).flatMap(({ file, text }) =>
      [...text.matchAll(/from '(\.[^']*)'/g)].map(([, path = '']) => [file, join(file, '..', path)] as const),
    );
    const isWithin = (from: string, to: string) => from.split('/')[1] === to.split('/')[1];
    expect(imports.length).toBeGreaterThan(300);
    expect(imports.filter(([from, to]) => !isWithin(from, to) && rowOf(to) <= rowOf(from))).toEqual([]);
  });

  it('A picture of the layers names every folder of lib, and no other', () => {
    const texts = [...readPage('docs/layers.svg').matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
    expect(
      texts
        .join(' ')
        .match(/[\w-]+(?=\/)/g)
        ?.sort(),
    ).toEqual(foldersOf().sort());
  });
});

it('The site has every page in its sidebar', () => {
  const listed = SECTIONS.flatMap(({ pages }) => pages);
  expect([...listed].sort()).toEqual([...PAGES].sort());
  expect(listed.filter((page) => onSite(page) === undefined)).toEqual([]);
});

it('llms.txt lists the pages of the package, as they are now', () => {
  expect(readPage('llms.txt')).toBe(packedList());
  expect(packageJson.files).toContain('llms.txt');
});
