import { type StdioOptions, spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildSync } from 'esbuild';
import { installLockedPackages } from '../../support/npm-install';

const root = join(__dirname, '..', '..');
/** For what is built here. */
export const cache = join(__dirname, 'node_modules', '.cache');

export const built = {
  /** The entry file of the package as it is published, built from the sources for every run. */
  library: join(cache, 'library', 'dist', 'index.js'),
  /** Plain JavaScript starts faster than a TypeScript loader, and a run starts hundreds of processes. */
  worker: join(cache, 'worker.js'),
};

/** Installs the peers, and builds the library and the program of the child processes. */
export function prepare(): void {
  installLockedPackages(__dirname, 'Installing the peers to compare with, once, into scripts/bench/node_modules …');
  const build = join(root, 'scripts', 'build.ts');
  // stdout is reserved for the results.
  const stdio = ['ignore', 2, 2] satisfies StdioOptions;
  const args = ['-r', 'esbuild-register', build, dirname(built.library)];
  if (spawnSync(process.execPath, args, { stdio, cwd: root }).status !== 0)
    throw new Error('The library cannot be built; the errors are above');
  // It has the names that the package imports of itself.
  copyFileSync(join(root, 'package.json'), join(cache, 'library', 'package.json'));
  buildSync({
    entryPoints: [join(__dirname, 'worker.ts')],
    outfile: built.worker,
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
}
