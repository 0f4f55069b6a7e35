import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';

/** Where a program of `support/compiled.ts` finds its packages first. */
const FOLDER = join(__dirname, '../node_modules/.cache/test-programs/node_modules');

const PACKAGES = ['redis', 'redis5'];

/** For `moduleNameMapper`. */
export const CLIENTS = Object.fromEntries(PACKAGES.map((name) => [`^${name}$`, join(FOLDER, name, 'index.js')]));

/**
 * Makes one module of each client with its dependencies: node-redis has some 600, and each test file would load them again.
 */
export async function bundleClients(): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: Object.fromEntries(PACKAGES.map((name) => [`${name}/index`, require.resolve(name)])),
    outdir: FOLDER,
    bundle: true,
    platform: 'node',
    target: 'node20',
    keepNames: true,
    logLevel: 'warning',
    write: false,
  });
  for (const { path, contents } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true });
    // In one step: another run may be reading it.
    const whole = `${path}.${process.pid}`;
    writeFileSync(whole, contents);
    renameSync(whole, path);
  }
}
