import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { codeSpans, PAGES, prose, ROOT } from './pages';

const run = promisify(execFile);

interface Link {
  /** Path from the root of the checkout. */
  readonly file: string;
  readonly anchor: string | undefined;
}

function relativeLinks(page: string): Link[] {
  const targets = [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target as string);
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path, anchor] = target.split('#') as [string, string?];
      return { file: path === '' ? page : normalize(join(dirname(page), path)), anchor };
    });
}

/** The anchors of a page, as GitHub and npm make them from its headings. */
function anchors(page: string): string[] {
  const headings = [...prose(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading as string);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

async function filesOfPackage(): Promise<Set<string>> {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = await run('npm', args, { cwd: ROOT, timeout: 120_000 });
  const packed: unknown = JSON.parse(stdout);
  // An array, or since npm 12 an object by name.
  const [{ files }] = Object.values(packed as object) as [{ files: { path: string }[] }];
  return new Set(files.map(({ path }) => path));
}

describe('A link', () => {
  let packed: Set<string>;

  beforeAll(async () => {
    packed = await filesOfPackage();
  });

  it.each([...PAGES, '.github/CODE_OF_CONDUCT.md'])(
    'A link in %s leads to a file that is there, and to a heading',
    (page) => {
      const broken = relativeLinks(page).filter(({ file, anchor }) => {
        if (!existsSync(join(ROOT, file))) return true;
        return anchor !== undefined && !anchors(file).includes(anchor);
      });
      expect(broken).toEqual([]);
    },
  );

  it('A link leads to pages that are in the npm package, but for those that contributors need', () => {
    expect(PAGES.filter((page) => !packed.has(page))).toEqual([
      'CONTRIBUTING.md',
      'docs/architecture.md',
      'docs/examples/README.md',
    ]);
  });

  it.each(PAGES)('A link in %s works in the npm package too, if the page is in it', (page) => {
    if (!packed.has(page)) return;
    expect(relativeLinks(page).filter(({ file }) => !packed.has(file))).toEqual([]);
  });

  it.each(PAGES)('A link is not needed for the files that %s names: they exist', (page) => {
    const paths = codeSpans(prose(page)).filter((code) => /^(lib|docs|scripts|__tests__)\/[\w./-]+$/.test(code));
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});
