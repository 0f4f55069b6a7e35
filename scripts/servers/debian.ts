import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const SOURCES = '/etc/apt/sources.list';
const MIRROR = /https?:\/\/\S+\/debian\/?(?=\s)/;

const run = promisify(execFile);

/**
 * Packages of another release of Debian than this machine's, unpacked into `folder` once. Nothing is installed. Throws
 * where they cannot be had.
 */
export async function unpackDebian(release: string, packages: readonly string[], folder: string): Promise<void> {
  if (existsSync(join(folder, 'usr'))) return;
  const made = `${folder}.${process.pid}`;
  try {
    await mkdir(join(made, 'lists/partial'), { recursive: true });
    const sources = join(made, 'sources.list');
    await writeFile(sources, `deb [trusted=yes] ${await mirror()} ${release} main\n`);
    const options = {
      'Dir::Etc::sourcelist': sources,
      'Dir::Etc::sourceparts': '/dev/null',
      'Dir::State::Lists': join(made, 'lists'),
      'Dir::State::status': '/dev/null',
      'Dir::Cache': made,
      'APT::Sandbox::User': 'root',
    };
    const apt = (...words: string[]) =>
      run('apt-get', ['-qq', ...Object.entries(options).map(([name, value]) => `-o${name}=${value}`), ...words], {
        cwd: made,
      });
    await apt('update');
    await apt('download', ...packages);
    const root = join(made, 'root');
    for (const file of await readdir(made))
      if (file.endsWith('.deb')) await run('dpkg', ['-x', join(made, file), root]);
    await rm(folder, { recursive: true, force: true });
    await rename(root, folder);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

/** The words before a binary that run it with the libraries that are in this folder. */
export function withLibrariesOf(folder: string): string[] {
  const loader = join(folder, 'usr/lib64/ld-linux-x86-64.so.2');
  const libraries = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu'].map((one) => join(folder, one));
  return [loader, '--library-path', libraries.join(':')];
}

/** The mirror that this machine takes its own packages from. */
async function mirror(): Promise<string> {
  const parts = await readdir(`${SOURCES}.d`).catch(() => []);
  const files = [SOURCES, ...parts.map((name) => join(`${SOURCES}.d`, name))];
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
  const [found] = MIRROR.exec(`${texts.join('\n')}\n`) ?? [];
  if (found === undefined) throw new Error('this machine names no mirror of Debian');
  return found;
}
