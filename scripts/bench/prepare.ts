import { spawnSync } from 'node:child_process';
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
  worker: join(cache, 'worker.js'),
};

/** Installs the other libraries, and bundles a program of child processes, which starts sooner than from TypeScript. */
export function prepareWorker(source: string, outfile: string): void {
  installLockedPackages(__dirname, 'Installing the peers to compare with, once, into scripts/bench/node_modules …');
  const options = { bundle: true, packages: 'external', platform: 'node', target: 'node20' } as const;
  const define = { LIB_FOLDER: JSON.stringify(join(root, 'lib')) };
  buildSync({ entryPoints: [join(__dirname, source)], outfile, logLevel: 'warning', define, ...options });
}

export function prepare(): void {
  prepareWorker('worker.ts', built.worker);
  const build = join(root, 'scripts', 'build.ts');
  const args = ['-r', 'esbuild-register', build, dirname(built.library)];
  if (spawnSync(process.execPath, args, { stdio: 'inherit', cwd: root }).status !== 0)
    throw new Error('The library cannot be built; the errors are above');
  // It has the names that the package imports of itself.
  copyFileSync(join(root, 'package.json'), join(cache, 'library', 'package.json'));
}
