import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';

/**
 * Prints how large the built package is, and how long it takes to load. Fails when a size is above its limit. Times are
 * not judged: they depend on the machine.
 */

const ROOT = join(__dirname, '..');
const run = promisify(execFile);

/** bytes; npm counts a kB as 1000. */
const LIMITS = { package: 150_000, bundle: 165_000 };

/** How many new processes load the library. */
const LOADS = 7;

/** What the library needs: a process has these anyway, or would have to load them for any such library. */
const NEEDED = [
  'async-mutex',
  ...['async_hooks', 'crypto', 'diagnostics_channel', 'events', 'os', 'util'].map((name) => `node:${name}`),
];

async function packageSize(): Promise<number> {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT });
  // An array, or since npm 12 an object by name.
  const [{ size }] = Object.values(JSON.parse(stdout) as object) as [{ size: number }];
  return size;
}

/** What the library adds to the bundle of an application, minified; and how much of it is async-mutex and its tslib. */
async function bundleSize(): Promise<{ all: number; mutex: number }> {
  const { metafile } = await build({
    stdin: {
      contents: `import { RedisLockRegistry } from './dist'; new RedisLockRegistry(client, { registryKey: 'orders', lockType: 'pub-sub' });`,
      resolveDir: ROOT,
    },
    bundle: true,
    minify: true,
    platform: 'node',
    write: false,
    metafile: true,
    outfile: 'bundle.js',
  });
  const [output] = Object.values(metafile.outputs);
  if (output === undefined) throw new Error('esbuild wrote nothing');
  const inputs = Object.entries(output.inputs).filter(([path]) => /node_modules\/(async-mutex|tslib)\//.test(path));
  return { all: output.bytes, mutex: inputs.reduce((sum, [, { bytesInOutput }]) => sum + bytesInOutput, 0) };
}

/** ms that `require` takes in a new process, beyond what it needs: the least of some. */
async function loadTime(): Promise<number> {
  const program = `
    for (const name of ${JSON.stringify(NEEDED)}) require(name);
    const start = performance.now();
    require('./dist');
    console.log(performance.now() - start);`;
  const times: number[] = [];
  for (let i = 0; i < LOADS; i++) {
    const { stdout } = await run(process.execPath, ['-e', program], { cwd: ROOT });
    times.push(Number(stdout));
  }
  return Math.min(...times);
}

function judged(bytes: number, limit: number): string {
  if (bytes > limit) process.exitCode = 1;
  return `${(bytes / 1_000).toFixed(1)} kB${bytes > limit ? `: more than the limit of ${limit / 1_000} kB` : ` (limit ${limit / 1_000})`}`;
}

async function main(): Promise<void> {
  const { all, mutex } = await bundleSize();
  console.log(`the package, as npm packs it: ${judged(await packageSize(), LIMITS.package)}`);
  console.log(
    `in a bundle, minified, one lock type used: ${judged(all, LIMITS.bundle)}; ${mutex / 1_000} kB of it async-mutex and tslib`,
  );
  console.log(`require('redis-lock-registry'), beyond what it needs: ${(await loadTime()).toFixed(1)} ms`);
}

void main();
