import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { NotToBeHad } from '../../support/grounds/cell';
import { packInto } from '../../support/pack';

export const ROOT = join(__dirname, '../..');

/**
 * Everything that is installed. It is outside the project: a program in node_modules/.cache would find the packages of the
 * project where it lacks its own. Each checkout has one, since each packs another library.
 */
export const GROUNDS = join(
  tmpdir(),
  `redis-lock-registry-grounds-${createHash('sha1').update(ROOT).digest('hex').slice(0, 8)}`,
);

const USER = join(__dirname, 'user');

/** ms, for one install over a slow network. */
const INSTALL = 300_000;

const run = promisify(execFile);

let packed: Promise<string> | undefined;

/** The tarball of the library, as it is published, packed once for each run. */
export function tarball(): Promise<string> {
  packed ??= pack();
  return packed;
}

async function pack(): Promise<string> {
  const folder = join(GROUNDS, `packed-${process.pid}`);
  await mkdir(folder, { recursive: true });
  try {
    const file = await packInto(folder);
    const last = join(GROUNDS, basename(file));
    await rename(file, last); // at once: another run may install it now
    return last;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Whether a registry lacks it, or is not reached. Everything else that an install may fail of is a fault. */
const MISSING = /\b(E404|ETARGET|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|E403)\b/;

/** npm's own work, without the environment of the project that runs this. */
async function npmInstall(cwd: string): Promise<void> {
  const env = { ...process.env, NODE_OPTIONS: undefined, NODE_ENV: undefined };
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', args, { cwd, env, timeout: INSTALL }).catch((error: Error & { stderr?: string }) => {
    const said = error.stderr?.trim() || error.message;
    if (MISSING.test(said)) throw new NotToBeHad(`npm: ${said.split('\n').find((line) => MISSING.test(line))}`);
    throw new Error(`npm install failed: ${said.slice(-1_000)}`);
  });
}

/** Programs that are no library: runtimes, compilers. A folder that has them in these versions is left as it is. */
export async function installTools(name: string, dependencies: Readonly<Record<string, string>>): Promise<string> {
  const folder = join(GROUNDS, 'tools', name);
  await mkdir(folder, { recursive: true });
  const manifest = JSON.stringify({ private: true, dependencies }, undefined, 1);
  const done = join(folder, 'installed.json');
  if (existsSync(done) && (await readFile(done, 'utf8')) === manifest) return folder;
  await writeFile(join(folder, 'package.json'), manifest);
  await npmInstall(folder);
  await writeFile(done, manifest);
  return folder;
}

const users = new Map<string, Promise<string>>();

/**
 * An application of its own: the library from its tarball, these packages, and the programs of `user`. It is installed
 * once in each run.
 */
export function installUser(...args: Parameters<typeof install>): Promise<string> {
  const [name] = args;
  const installed = users.get(name) ?? install(...args);
  users.set(name, installed);
  return installed;
}

async function install(
  name: string,
  dependencies: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
): Promise<string> {
  const folder = join(GROUNDS, 'users', name);
  const library = await tarball();
  await mkdir(folder, { recursive: true });
  // The tarball has the same name as before, and other content.
  for (const old of ['node_modules/redis-lock-registry', 'node_modules/.package-lock.json', 'package-lock.json'])
    await rm(join(folder, old), { recursive: true, force: true });
  const all = { 'redis-lock-registry': `file:${library}`, ...dependencies };
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies: all }, undefined, 1),
  );
  await npmInstall(folder);
  await cp(USER, folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
  return folder;
}
