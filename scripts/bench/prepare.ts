import { type StdioOptions, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';

const root = join(__dirname, '..', '..');
const modules = join(__dirname, 'node_modules');
const cache = join(modules, '.cache');

/** What the processes of the bench run. */
export const built = {
  /** The package as it is published, built anew from the sources for every run. */
  library: join(cache, 'library', 'index.js'),
  worker: join(cache, 'worker.js'),
  proxy: join(cache, 'proxy.js'),
  spinner: join(cache, 'spinner.js'),
};

export function prepare(): void {
  installPeers();
  buildLibrary();
  bundleProcesses();
}

/** The peers are a package of their own, so that whoever never measures need not install them. */
function installPeers(): void {
  const lock = (folder: string) => join(folder, folder === modules ? '.package-lock.json' : 'package-lock.json');
  if (existsSync(lock(modules)) && isInstalled(lock(__dirname), lock(modules))) return;
  console.error('Installing the peers to measure against, once, into scripts/bench/node_modules …');
  run(
    'npm',
    ['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'],
    'The peers could not be installed',
  );
}

function buildLibrary(): void {
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  run(process.execPath, [tsc, '-p', root, '--outDir', join(cache, 'library')], 'The library does not compile');
}

/** Plain JavaScript starts sooner than a loader for TypeScript, and there are hundreds of processes. */
function bundleProcesses(): void {
  buildSync({
    entryPoints: ['worker.ts', 'proxy.ts', 'spinner.ts'].map((file) => join(__dirname, file)),
    outdir: cache,
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
}

function run(command: string, args: string[], complaint: string): void {
  // What it says goes to stderr: stdout is for the results.
  const stdio = ['ignore', 2, 2] satisfies StdioOptions;
  const { status } = spawnSync(command, args, {
    cwd: __dirname,
    stdio,
    shell: process.platform === 'win32' && command === 'npm',
  });
  if (status === 0) return;
  console.error(`${complaint}: see above.`);
  process.exit(1);
}

type Lock = { packages: Record<string, { version?: string; optional?: true }> };

/** Whether every package that is wanted is there, in its version. */
function isInstalled(wanted: string, present: string): boolean {
  const [{ packages: want }, { packages: have }] = [wanted, present].map(
    (file) => JSON.parse(readFileSync(file, 'utf8')) as Lock,
  ) as [Lock, Lock];
  return Object.entries(want).every(
    ([path, { version, optional }]) => path === '' || optional || have[path]?.version === version,
  );
}
