import { type StdioOptions, spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildSync } from 'esbuild';
import { installLockedPackages } from '../npm-install';

const root = join(__dirname, '..', '..');
const modules = join(__dirname, 'node_modules');
/** For what is built here. */
export const cache = join(modules, '.cache');

/** The files that the child processes execute. */
export const built = {
  /** The package as it is published, built from the sources for every run. */
  library: join(cache, 'library', 'dist', 'index.js'),
  /** The same in one file, with a source map, for `--profile`. */
  mappedLibrary: join(cache, 'mapped-library', 'index.js'),
  worker: join(cache, 'worker.js'),
  proxy: join(cache, 'delay-proxy.js'),
  busyProcess: join(cache, 'busy-process.js'),
};

export function prepare(): void {
  installLockedPackages(__dirname, 'Installing the peers to compare with, once, into scripts/bench/node_modules …');
  buildLibrary();
  bundleProcesses();
}

function buildLibrary(): void {
  const build = join(root, 'scripts', 'build.ts');
  // stdout is reserved for the results.
  const stdio = ['ignore', 2, 2] satisfies StdioOptions;
  const { status } = spawnSync(process.execPath, ['-r', 'esbuild-register', build, dirname(built.library)], {
    stdio,
    cwd: root,
  });
  if (status !== 0) throw new Error('The library cannot be built; the errors are above');
  // It has the names that the package imports of itself.
  copyFileSync(join(root, 'package.json'), join(cache, 'library', 'package.json'));
}

/** Plain JavaScript starts faster than a TypeScript loader, and a run starts hundreds of processes. */
function bundleProcesses(): void {
  buildSync({
    entryPoints: ['worker.ts', 'delay-proxy.ts', 'busy-process.ts'].map((file) => join(__dirname, file)),
    outdir: cache,
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    sourcemap: true, // for `--profile`
    logLevel: 'warning',
  });
}

/** Call frames of the published build lead to no source. */
export function buildMappedLibrary(): void {
  buildSync({
    entryPoints: [join(root, 'lib', 'index.ts')],
    outfile: built.mappedLibrary,
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    logLevel: 'warning',
  });
}
