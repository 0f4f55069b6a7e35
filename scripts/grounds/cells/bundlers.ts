import assert from 'node:assert/strict';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cell, check } from '../../../support/grounds/cell';
import { installUser } from '../folder';
import { runProgram } from '../program';
import { bunBinary, nodeBinary } from '../runtimes';
import { ownServer, Server } from '../server';
import { BUN, CLIENTS, ESBUILD, NODES, ROLLDOWN, RSPACK, WEBPACK } from '../versions';

/** What user/app.mjs prints, bundled or not. */
const OF_A_TYPE = ['LockTimeoutError', 'passed on', 'entered again', 'true'];
const PRINTED = [...OF_A_TYPE, ...OF_A_TYPE, ...OF_A_TYPE, 'in memory'].join();

/** What makes `require` of Node's modules work in a bundle that is an ES module. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

interface Bundler {
  readonly name: string;
  readonly title: string;
  readonly packages: Readonly<Record<string, string>>;
  /** Bundles app.mjs of the folder. Returns the command that runs the bundle. */
  bundle(folder: string, node: string): Promise<readonly string[]>;
}

/** A build program of a user, in the folder. */
async function build(folder: string, node: string, program: string): Promise<void> {
  await writeFile(join(folder, 'build.mjs'), program);
  await runProgram([node, 'build.mjs'], folder);
}

const esbuild = (options: string) =>
  `import { build } from 'esbuild';\nawait build({ entryPoints: ['app.mjs'], bundle: true, platform: 'node', ${options} });`;

/** For webpack and for rspack. */
const webpack = (name: string, what: string, file: string) => `import { ${what} as bundler } from '${name}';
const options = {
  mode: 'production', target: 'node20', entry: './app.mjs', context: import.meta.dirname,
  experiments: { outputModule: true },
  output: { filename: '${file}', path: import.meta.dirname, module: true, library: { type: 'module' } },
};
bundler(options, (error, stats) => {
  if (error || stats.hasErrors()) { console.error(error ?? stats.toString('errors-only')); process.exit(1); }
});
`;

const BUNDLERS: readonly Bundler[] = [
  {
    name: 'esbuild',
    title: `esbuild ${ESBUILD}, an ES module`,
    packages: { esbuild: ESBUILD },
    bundle: async (folder, node) => {
      await build(
        folder,
        node,
        esbuild(`format: 'esm', outfile: 'out.mjs', banner: { js: ${JSON.stringify(REQUIRE)} }`),
      );
      return [node, 'out.mjs'];
    },
  },
  {
    name: 'esbuild-minified',
    title: `esbuild ${ESBUILD}, CommonJS and minified`,
    packages: { esbuild: ESBUILD },
    bundle: async (folder, node) => {
      await asCommonJs(folder);
      await build(
        folder,
        node,
        esbuild("format: 'cjs', minify: true, outfile: 'out.cjs'").replace('app.mjs', 'main.mjs'),
      );
      return [node, 'out.cjs'];
    },
  },
  {
    name: 'rolldown',
    title: `rolldown ${ROLLDOWN}, minified`,
    packages: { rolldown: ROLLDOWN },
    bundle: async (folder, node) => {
      const input = "input: 'app.mjs', platform: 'node'";
      const output = "output: { file: 'rolldown.mjs', format: 'esm', minify: true, codeSplitting: false }";
      await build(folder, node, `import { build } from 'rolldown';\nawait build({ ${input}, ${output} });`);
      return [node, 'rolldown.mjs'];
    },
  },
  {
    name: 'webpack',
    title: `webpack ${WEBPACK}, production`,
    packages: { webpack: WEBPACK },
    bundle: async (folder, node) => {
      await build(folder, node, webpack('webpack', 'default', 'webpack.mjs'));
      return [node, 'webpack.mjs'];
    },
  },
  {
    name: 'rspack',
    title: `rspack ${RSPACK}, production`,
    packages: { '@rspack/core': RSPACK },
    bundle: async (folder, node) => {
      await build(folder, node, webpack('@rspack/core', 'rspack', 'rspack.mjs'));
      return [node, 'rspack.mjs'];
    },
  },
  {
    name: 'bun-build-compile',
    title: `\`bun build --compile\` ${BUN}, minified`,
    packages: {},
    bundle: async (folder) => {
      await runProgram(
        [await bunBinary(), 'build', 'app.mjs', '--compile', '--minify', '--outfile', 'compiled'],
        folder,
      );
      return [join(folder, 'compiled')];
    },
  },
  {
    name: 'node-sea',
    title: `Node ${NODES[26]}, \`--build-sea\``,
    packages: { esbuild: ESBUILD },
    bundle: async (folder, node) => {
      await asCommonJs(folder);
      await build(folder, node, esbuild("format: 'cjs', outfile: 'sea.cjs'").replace('app.mjs', 'main.mjs'));
      const newest = await nodeBinary(NODES[26]);
      const config = { main: 'sea.cjs', output: 'sea', disableExperimentalSEAWarning: true, executable: newest };
      await writeFile(join(folder, 'sea.json'), JSON.stringify(config));
      await runProgram([newest, '--build-sea', 'sea.json'], folder);
      await chmod(join(folder, 'sea'), 0o755);
      return [join(folder, 'sea')];
    },
  },
];

/** CommonJS has no `await` outside of functions: the application becomes one. */
async function asCommonJs(folder: string): Promise<void> {
  const lines = (await readFile(join(folder, 'app.mjs'), 'utf8')).split('\n');
  const imports = lines.filter((line) => line.startsWith('import '));
  const rest = lines.filter((line) => !line.startsWith('import '));
  await writeFile(join(folder, 'main.mjs'), [...imports, 'void (async () => {', ...rest, '})();'].join('\n'));
}

/** Each bundler once; what it made runs on Node 24, or is a program of its own. */
export const bundlerCells: readonly Cell[] = BUNDLERS.map(({ name, title, packages, bundle }) => ({
  name: `bundler/${name}`,
  ground: 'bundler',
  title,
  through: `redis ${CLIENTS['redis-6'].redis}`,
  limit: 300_000,
  run: async (report) => {
    const node = await nodeBinary(NODES[24]);
    const folder = await installUser(`bundler-${name}`, { ...CLIENTS['redis-6'], ...packages });
    const server = await Server.start(ownServer());
    try {
      let command: readonly string[] = [];
      await check(report, 'it bundles an application', async () => {
        command = await bundle(folder, node);
      });
      await check(report, 'the bundle does what the application does', async () => {
        const { stdout, stderr } = await runProgram(command, folder, { REDIS_URL: server.url }, 60_000);
        assert.deepEqual([stdout.trim(), stderr], [PRINTED, '']);
      });
    } finally {
      await server.stop();
    }
    return undefined;
  },
}));
