import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';

/**
 * Prints how large the built package is, how large it makes a bundle, and how long it takes to load. Fails when something
 * is above its limit.
 */

const ROOT = join(__dirname, '..');
const run = promisify(execFile);

/**
 * What the package may have is said for good; the other limits are a little more than what was measured last: 238.5 kB
 * in a bundle. A goal is what would be left without what is known to be too much: of the package, a third of the words of
 * its pages (25 kB); of the bundle, the comments and blanks of the Lua scripts (13 kB).
 */
const PACKAGE = { unit: 'kB', goal: 250, limit: 316 };
const UNPACKED = { unit: 'kB', goal: 900, limit: 1_180 };
const BUNDLE = { unit: 'kB', goal: 215, limit: 264 };
const LOAD = { unit: 'ms of the processor', goal: 15, limit: 60 };

/** How many new processes load the library. */
const LOADS = 7;

/** What the library needs: a process has these anyway, or would have to load them for any such library. */
const NEEDED = ['async_hooks', 'crypto', 'diagnostics_channel', 'events', 'os', 'util'].map((name) => `node:${name}`);

/** kB, of 1,000 bytes as npm counts them: as it is sent, and as it is installed. */
async function packed(): Promise<{ sent: number; installed: number }> {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT });
  // An array, or since npm 12 an object by name.
  const [{ size, unpackedSize }] = Object.values(JSON.parse(stdout) as object) as [
    { size: number; unpackedSize: number },
  ];
  return { sent: size / 1_000, installed: unpackedSize / 1_000 };
}

/** kB of an application that only makes a registry, minified, with async-mutex and without a client. */
async function bundled(): Promise<number> {
  const contents =
    "import { RedisLockRegistry } from './dist'; new RedisLockRegistry(client, { registryKey: 'orders' });";
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT },
    bundle: true,
    minify: true,
    platform: 'node',
    write: false,
  });
  return outputFiles.reduce((sum, { contents }) => sum + contents.length, 0) / 1_000;
}

/** ms that `require` takes in a new process, beyond what it needs: the least of some. */
async function loadTime(): Promise<number> {
  const program = `
    for (const name of ${JSON.stringify(NEEDED)}) require(name);
    const start = process.cpuUsage();
    require('./dist');
    const { user, system } = process.cpuUsage(start);
    console.log((user + system) / 1_000);`;
  const times: number[] = [];
  for (let i = 0; i < LOADS; i++) {
    const { stdout } = await run(process.execPath, ['-e', program], { cwd: ROOT });
    times.push(Number(stdout));
  }
  return Math.min(...times);
}

function print(what: string, value: number, { unit, goal, limit }: typeof PACKAGE): void {
  if (value > limit) process.exitCode = 1;
  const isWithin = (bound: number) => (value > bound ? 'MORE than' : 'within');
  const judged = `${isWithin(goal)} the goal of ${goal}, ${isWithin(limit)} the limit of ${limit}`;
  console.log(`${what}: ${value.toFixed(1)} ${unit}, ${judged}`);
}

async function main(): Promise<void> {
  const { sent, installed } = await packed();
  print('the package, as npm packs it', sent, PACKAGE);
  print('the package, unpacked', installed, UNPACKED);
  print('in a bundle of an application, minified', await bundled(), BUNDLE);
  print('to load it, beyond what it needs', await loadTime(), LOAD);
}

void main();
