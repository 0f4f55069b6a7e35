import { type StdioOptions, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Installs the packages that a folder of `scripts` has locked, unless they are there already. They are kept out of the
 * project's own package.json because most people who install the project never need them.
 */
export function installLockedPackages(folder: string, announcement: string): void {
  const wanted = join(folder, 'package-lock.json');
  const present = join(folder, 'node_modules', '.package-lock.json');
  if (existsSync(present) && isInstalled(wanted, present)) return;
  console.error(announcement);
  // stdout may be reserved for results.
  const stdio = ['ignore', 2, 2] satisfies StdioOptions;
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'], {
    cwd: folder,
    stdio,
    timeout: 180_000,
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error(`\`npm ci\` failed in ${folder}; its output is above`);
}

type LockFile = { packages: Record<string, { version?: string; optional?: true }> };

/** Whether every locked package is present in the locked version. */
function isInstalled(wanted: string, present: string): boolean {
  const [{ packages: want }, { packages: have }] = [wanted, present].map(
    (file) => JSON.parse(readFileSync(file, 'utf8')) as LockFile,
  ) as [LockFile, LockFile];
  return Object.entries(want).every(
    ([path, { version, optional }]) => path === '' || optional || have[path]?.version === version,
  );
}
