import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import * as library from '../../lib';
import packageJson from '../../package.json';
import { codeSpans, PAGES, prose, ROOT, readPage, tableBelow } from './pages';

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
  const files = readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' });
  const sources = files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(ROOT, 'lib', file), 'utf8'));
  const [, members = ''] = new RegExp(`type ${name} =([^;]*);`).exec(sources.join('\n')) ?? [];
  return [...members.matchAll(/'([^']*)'/g)].map(([, member]) => member as string).sort();
}

describe('The tables of the pages name', () => {
  it('every option of a call, and no other', async () => {
    expect(firstCells('README.md', 'Options of a call')).toEqual(await knownOptions(refusal({}, { unknown: 1 })));
  });

  it('every option of a registry, and no other', async () => {
    expect(firstCells('README.md', 'Options of a registry')).toEqual(await knownOptions(refusal({ unknown: 1 })));
  });

  it('every lock type, and no other', async () => {
    const named = firstCells('README.md', 'Lock types').map((type) => type.replaceAll("'", ''));
    const known = /one of (.*), got/.exec(await refusal({ lockType: 'unknown' }))?.[1]?.split(', ');
    expect(named).toEqual(known?.sort());
  });

  it('every error, and no other', () => {
    const classes = Object.keys(library).filter((name) => name.endsWith('Error') && name !== 'LockError');
    expect(firstCells('docs/troubleshooting.md', 'Errors')).toEqual(classes.sort());
  });

  it('every code of a warning, and no other', () => {
    expect(firstCells('docs/operations.md', 'Warnings')).toEqual(union('LockWarningCode'));
  });
});

it.each(['api/distributed-lock.ts', 'api/options.ts'])(
  'Every optional option has @default in its comment: %s',
  (file) => {
    const source = readFileSync(join(ROOT, 'lib', file), 'utf8');
    const options = [...source.matchAll(/^export interface \w+Options(?: extends \w+)? {\n(.*?)^}/gms)].map(
      ([, body]) => body as string,
    );
    const documented = options.join('').split(/(?<=;\n)/);
    const without = documented.filter((text) => /^ {2}\w+\?:/m.test(text) && !text.includes(' * @default '));
    expect(documented.length).toBeGreaterThan(2);
    expect(without).toEqual([]);
  },
);

it.each(tableBelow('docs/architecture.md', 'Where to look').map(([question, file, names]) => [question, file, names]))(
  'docs/architecture.md answers where to look: %s',
  (_question, file = '', names = '') => {
    const source = readFileSync(join(ROOT, 'lib', `${codeSpans(file)[0]}.ts`), 'utf8');
    for (const name of codeSpans(names)) expect(source).toMatch(new RegExp(`(?<![\\w#])${name}\\b`));
  },
);

it('README.md has at most 150 lines', () => {
  expect(readPage('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(150);
});

describe('docs/architecture.md', () => {
  const page = readPage('docs/architecture.md');

  it('is one page, without long cells', () => {
    const cells = page.split('\n').flatMap((line) => (line.startsWith('|') ? line.split('|') : []));
    expect(page.split('\n').length).toBeLessThan(150);
    expect(cells.filter((cell) => cell.length > 200)).toEqual([]);
  });

  it('shows every folder of lib', () => {
    const folders = readdirSync(join(ROOT, 'lib'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const nested = readdirSync(join(ROOT, 'lib/protocols'), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    const names = [...folders, ...nested].map(({ name }) => name);
    expect(names.filter((name) => !new RegExp(`(^|\\s)${name}/`, 'm').test(page))).toEqual([]);
  });

  it('names only files and folders of lib that are there', () => {
    const folders = readdirSync(join(ROOT, 'lib'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const paths = codeSpans(prose('docs/architecture.md')).filter((code) =>
      folders.some(({ name }) => code.startsWith(`${name}/`)),
    );
    expect(paths.length).toBeGreaterThan(20);
    expect(paths.filter((path) => !existsSync(join(ROOT, 'lib', path.endsWith('/') ? path : `${path}.ts`)))).toEqual(
      [],
    );
  });
});

describe('The pages name', () => {
  it.each(PAGES)('only commands that there are: %s', (page) => {
    const named = [...readPage(page).matchAll(/npm run ([\w:-]+)/g)].map(([, script]) => script as string);
    expect(named.filter((script) => !(script in packageJson.scripts))).toEqual([]);
  });
});
