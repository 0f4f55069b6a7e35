import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const CACHE = join(__dirname, '../../../../node_modules/.cache/interop');

/** The folder of a language's packages and builds. */
export function cacheOf(name: string): string {
  return join(CACHE, name);
}

/** Installs into an empty folder, unless what is there was made from the same text, as of a list of packages. */
export function installOnce(folder: string, from: string, install: () => void): void {
  const stamp = join(folder, '.made-from');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === from) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  install();
  writeFileSync(stamp, from);
}

/** Whether the program is there and says so by its exit code. */
export function runsHere(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 60_000 }).status === 0;
}

/** Runs a step of an installation, and throws what it printed if it fails. */
export function runStep(command: string, args: readonly string[], cwd?: string): void {
  const options = { encoding: 'utf8', timeout: 900_000, ...(cwd === undefined ? {} : { cwd }) } as const;
  const { status, stdout, stderr, error } = spawnSync(command, args, options);
  if (status === 0) return;
  throw new Error(`${command} ${args.join(' ')} failed:\n${error ?? `${stdout}${stderr}`}`);
}
