import { type StdioOptions, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { installLockedPackages } from '../npm-install';

const root = join(__dirname, '..', '..');
const modules = join(__dirname, 'node_modules');
/** For what is built here. */
export const cache = join(modules, '.cache');

/** The files that the child processes execute. */
export const built = {
  /** The package as it is published, built from the sources for every run. */
  library: join(cache, 'library', 'index.js'),
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
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  // stdout is reserved for the results.
  const stdio = ['ignore', 2, 2] satisfies StdioOptions;
  const { status } = spawnSync(process.execPath, [tsc, '-p', root, '--outDir', join(cache, 'library')], { stdio });
  if (status !== 0) throw new Error('The library does not compile; the errors are above');
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
    logLevel: 'warning',
  });
}
