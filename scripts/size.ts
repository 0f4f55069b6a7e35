import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';

/**
 * Prints how large the built package is, and how long it takes to load. Fails when something is above its goal, or
 * above what it was.
 */

const ROOT = join(__dirname, '..');
const run = promisify(execFile);

/**
 * Bytes (npm counts a kB as 1000), and ms. The goal of one type is not met. Its bundle has 99.5 kB. In it are, in kB,
 * measured from the sources: segmented locks 4.2, `minReplicas` 4.4, `inspect`, `list` and `forceUnlock` 3.9, pollers 3.9,
 * `lease.eval` 1.9, `LONG_WAIT` 1.9, the diagnostics channels 1.9, `minHold` 0.9. Without all of these it would still have
 * about 76. If every property had a name of one letter, those of JavaScript included, it would have 81. About 2 kB are
 * the price of CommonJS, which no bundler takes apart. Dynamic `import()` could leave some of it to a later load in few
 * bundlers only, and rejects in the tests of an application that uses jest.
 */
const GOALS = { package: 150_000, bundleOfOneType: 60_000, load: 15 };

/** Bytes: what bundles had when this was last lowered, and a little more. Lower it when they get smaller. */
const MOST = { bundle: 154_000, bundleOfOneType: 99_500 };

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

/** Bytes by the file or folder they come from. */
type Parts = ReadonlyMap<string, number>;

/** What one class of the library adds to the bundle of an application, minified. */
async function bundled(file: string, registry: string, options: object): Promise<{ all: number; parts: Parts }> {
  const settings = JSON.stringify({ registryKey: 'orders', ...options });
  const { metafile } = await build({
    stdin: {
      contents: `import { ${registry} } from './${file}'; new ${registry}(client, ${settings});`,
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
  const parts = new Map<string, number>();
  for (const [path, { bytesInOutput }] of Object.entries(output.inputs)) {
    const folder = /node_modules\/[^/]+/.exec(path)?.[0] ?? dirname(path);
    parts.set(folder, (parts.get(folder) ?? 0) + bytesInOutput);
  }
  return { all: output.bytes, parts };
}

/**
 * ms that `require` takes in a new process, beyond what it needs: the least of some. Time of the processor, since other
 * programs of the machine do not count.
 */
async function loadTime(file: string): Promise<number> {
  const program = `
    for (const name of ${JSON.stringify(NEEDED)}) require(name);
    const start = process.cpuUsage();
    require('./${file}');
    const { user, system } = process.cpuUsage(start);
    console.log((user + system) / 1_000);`;
  const times: number[] = [];
  for (let i = 0; i < LOADS; i++) {
    const { stdout } = await run(process.execPath, ['-e', program], { cwd: ROOT });
    times.push(Number(stdout));
  }
  return Math.min(...times);
}

/** Says whether a value is within each of its limits, and remembers that one is not. */
function judged(value: number, unit: string, limits: Readonly<Record<string, number>>): string {
  const judgements = Object.entries(limits).map(([name, limit]) => {
    if (value > limit) process.exitCode = 1;
    return `${value > limit ? 'MORE than' : 'within'} the ${name} of ${limit} ${unit}`;
  });
  return `${value.toFixed(1)} ${unit}, ${judgements.join(', ')}`;
}

function size(bytes: number, limits: Readonly<Record<string, number>>): string {
  const inKilobytes = Object.entries(limits).map(([name, limit]) => [name, limit / 1_000]);
  return judged(bytes / 1_000, 'kB', Object.fromEntries(inKilobytes));
}

/** The largest first. */
function table(parts: Parts): string {
  const largest = [...parts].sort(([, a], [, b]) => b - a).filter(([, bytes]) => bytes >= 100);
  return largest.map(([folder, bytes]) => `${(bytes / 1_000).toFixed(1).padStart(8)} kB  ${folder}`).join('\n');
}

async function main(): Promise<void> {
  const main = await bundled('dist', 'RedisLockRegistry', { lockType: 'pub-sub' });
  const one = await bundled('dist/one-type/pub-sub', 'PubSubLockRegistry', {});
  // The built files hold several folders each. The sources have comments in their scripts.
  const { parts } = await bundled('lib/one-type/pub-sub', 'PubSubLockRegistry', {});
  console.log(`the package, as npm packs it: ${size(await packageSize(), { goal: GOALS.package })}`);
  console.log(`in a bundle, minified, all lock types: ${size(main.all, { limit: MOST.bundle })}`);
  const limits = { goal: GOALS.bundleOfOneType, limit: MOST.bundleOfOneType };
  console.log(`in a bundle, minified, redis-lock-registry/pub-sub: ${size(one.all, limits)}`);
  console.log(`  of it, measured from the sources:\n${table(parts)}`);
  for (const [name, file] of [
    ['redis-lock-registry', 'dist'],
    ['redis-lock-registry/pub-sub', 'dist/one-type/pub-sub'],
  ] as const) {
    const time = judged(await loadTime(file), 'ms', { goal: GOALS.load });
    console.log(`require('${name}'), beyond what it needs: ${time}`);
  }
}

void main();
