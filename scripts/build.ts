import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { type Plugin, rollup } from 'rollup';
import manifest from '../package.json';
import { luaTable, READS_LUA } from '../support/lua-files';

/**
 * `npm run build`: tsc compiles `lib`, and rollup puts the modules into a few files of CommonJS that the entry points
 * share, in `dist` or in the folder of the argument. Nothing is minified: names and lines stay, so that what is built can
 * be read as it is. Comments are in the types and in the repository: in the code they would be a fifth of the package.
 * There are no source maps to files that the package does not have. Few files load several times as fast as one for each
 * module, and there is one class of each name in a process, whatever it loads.
 */

const ROOT = join(__dirname, '..');
const TSC = join(ROOT, 'node_modules/.bin/tsc');
const run = promisify(execFile);

/** The folder of `lib` in which the command line begins. It has no types. */
const COMMAND_LINE = { './dist/cli/main.js': 'tools/cli/main' };

/**
 * Of each file that package.json names for Node, its module of `lib`: where its types are. The files of `dist` follow the
 * import paths, `ioredis/index`, and stay where they are when modules move.
 */
const ENTRIES = new Map(
  [
    ...Object.values(manifest.exports).flatMap((target): [string, string][] =>
      typeof target === 'string' ? [] : [[target.default, target.types]],
    ),
    ...Object.entries(COMMAND_LINE),
  ].map((files) => files.map((file) => file.replace(/^\.\/dist\/|(\.d)?\.[jt]s$/g, '')) as [string, string]),
);

/** Modules of `lib` with all they need, by the file that they are in: what every registry has, and one on Redis. */
const SHARED = { core: 'registry/backed-lock-registry', redis: 'registry/redis-lock-registry' };

/**
 * async-mutex goes into a file of its own, from its build of ES modules: its CommonJS build loads tslib, which makes 32
 * global variables. So it is no dependency of the package, whose users would install what nothing loads; its version and
 * its licence stand at the head of that file.
 */
const MUTEX = 'async-mutex';
const MUTEX_FOLDER = dirname(require.resolve(`${MUTEX}/package.json`));

/** How a module reads a file beside it, for which it gets the text: see lib/tools/dashboard. */
const READS = /readFileSync\(join\(__dirname, '([^']+)'\), 'utf8'\)/g;
const READERS = /^import \{ (?:readFileSync|join) \} from .*$/gm;

/** Reads what tsc has written. */
const COMPILED = {
  name: 'compiled',
  resolveId(source, importer) {
    if (source === MUTEX) return join(MUTEX_FOLDER, 'index.mjs');
    if (importer === undefined || !source.startsWith('.')) return null;
    const path = resolve(dirname(importer), source);
    return [`${path}.js`, `${path}/index.js`, path].find((file) => existsSync(file)) ?? null;
  },
  async load(file) {
    if (READS_LUA.test(file)) return luaTable();
    const code = await readFile(file, 'utf8');
    if (!READS.test(code)) return code;
    const folder = dirname(file.replace(/^.*[/\\]compiled-[^/\\]+/, join(ROOT, 'lib')));
    const textOf = (_: string, name: string) => {
      return `\`${readFileSync(join(folder, name), 'utf8').replaceAll(/[\\`]|\$\{/g, '\\$&')}\``;
    };
    return code.replaceAll(READS, textOf).replaceAll(READERS, '');
  },
} satisfies Plugin;

/** What its licence asks for. Bundlers and minifiers keep a comment of this form. */
function mutexNotice(): string {
  const { repository, version } = require(`${MUTEX}/package.json`);
  const licence = readFileSync(join(MUTEX_FOLDER, 'LICENSE'), 'utf8').trim();
  const lines = [`${MUTEX} ${version}, ${repository.url}`, '', ...licence.split('\n')];
  return ['/*!', ...lines.map((line) => ` * ${line}`.trimEnd()), ' */'].join('\n');
}

/** The folder of `lib` that the last of some modules is in: those before it are what it needs. */
function folderOf(modules: readonly string[]): string {
  return basename(dirname(modules.at(-1) ?? ''));
}

async function writeScripts(compiled: string, folder: string): Promise<void> {
  const bundled = await rollup({
    input: Object.fromEntries([...ENTRIES].map(([file, module]) => [file, join(compiled, `${module}.js`)])),
    plugins: [COMPILED],
    // Rollup takes a property for `undefined` that `Object.assign` sets elsewhere.
    treeshake: false,
    external: (id) => !/^[./]/.test(id) && id !== MUTEX,
    onwarn(warning) {
      throw new Error(`rollup: ${warning.message}`);
    },
  });
  await bundled.write({
    dir: folder,
    format: 'cjs',
    exports: 'named',
    interop: 'default',
    generatedCode: { preset: 'es2015', symbols: false },
    externalLiveBindings: false,
    hoistTransitiveImports: false,
    minifyInternalExports: false,
    chunkFileNames: ({ name, moduleIds }) => `chunks/${name === 'index' ? folderOf(moduleIds) : name}.js`,
    banner: ({ name }) => (name === MUTEX ? mutexNotice() : ''),
    manualChunks: {
      [MUTEX]: [MUTEX],
      ...Object.fromEntries(Object.entries(SHARED).map(([name, module]) => [name, [join(compiled, `${module}.js`)]])),
    },
  });
  await bundled.close();
}

/** Leaves the types that an entry point refers to, so that an editor offers nothing else. */
async function removeInternalTypes(folder: string): Promise<void> {
  const entries = [...ENTRIES.values()].map((module) => join(folder, `${module}.d.ts`));
  const { stdout } = await run(TSC, ['--listFilesOnly', '--ignoreConfig', '--module', 'nodenext', ...entries]);
  const published = new Set(stdout.split('\n'));
  const files = (await readdir(folder, { recursive: true })).map((path) => join(folder, path));
  await Promise.all(files.filter((file) => file.endsWith('.d.ts') && !published.has(file)).map((file) => rm(file)));
}

async function main(folder = join(ROOT, 'dist')): Promise<void> {
  const cache = join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const compiled = await mkdtemp(join(cache, 'compiled-'));
  try {
    await rm(folder, { recursive: true, force: true });
    const modules = ['--module', 'esnext', '--moduleResolution', 'bundler'];
    await run(TSC, ['-p', ROOT, ...modules, '--outDir', compiled, '--declaration', 'false', '--removeComments']);
    await run(TSC, ['-p', ROOT, ...modules, '--emitDeclarationOnly', '--declarationDir', folder]);
    await writeScripts(compiled, folder);
    await removeInternalTypes(folder);
  } finally {
    await rm(compiled, { recursive: true });
  }
}

main(process.argv[2]).catch((error: unknown) => {
  const printed = error instanceof Error && 'stdout' in error ? error.stdout : error;
  console.error(printed);
  process.exitCode = 1;
});
