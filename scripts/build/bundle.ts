import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { minify } from '@swc/core';
import { transform } from 'esbuild';
import { type Plugin, rollup } from 'rollup';
import { HAS_LUA, shortenLua } from './lua';

/**
 * Makes CommonJS of the library, in few files: what several entry points need is in chunks that they share, so there is
 * one class of each name in a process, whatever it loads. To load a few files is several times as fast as to load each
 * source by itself.
 */

/** The name of an entry point's file, without its extension, and its source. */
export type Entries = Readonly<Record<string, string>>;

/** What package.json maps to the ES build of async-mutex, for bundlers: it needs no tslib. */
const MAPPED = { 'async-mutex': '#async-mutex' };

/** A stack trace names a line: a line may not hold half the library. Characters. */
const LONGEST_LINE = 400;

/**
 * Files of `lib` that are in one chunk, each with all it needs. `core`: what every registry has. `redis`: what every
 * registry on Redis has, and what several lock types share. Smaller chunks would take longer to load, together.
 */
const SHARED = {
  core: ['backed-lock-registry', 'diagnostics/publishing-warnings'],
  redis: [
    'redis-backend',
    'redis-settings',
    'protocols/contended/notified',
    'protocols/format/server-time',
    'protocols/inspection/spring-inspector',
    'protocols/spring/spring-format',
  ],
};

/**
 * Only local variables get short names: a stack trace has the names of classes and functions, private ones too. Short
 * names for internal properties would make a bundle of one lock type 8 % smaller. They are not worth the traces, nor the
 * risk: which properties are internal, no tool knows for certain.
 */
const NAMES = { toplevel: false, keep_fnames: true, keep_private_props: true };

const inLib = (name: string) => resolve(__dirname, `../../lib/${name}.ts`);

const SOURCES = {
  name: 'sources',
  resolveId(source, importer) {
    if (importer === undefined || !source.startsWith('.')) return null;
    const path = resolve(dirname(importer), source);
    return [`${path}.ts`, `${path}/index.ts`].find((file) => existsSync(file)) ?? null;
  },
  async transform(code, file) {
    const tsconfigRaw = { compilerOptions: { target: 'es2022', useDefineForClassFields: true } } as const;
    const script = await transform(shortenInfinity(code), {
      loader: 'ts',
      target: 'es2022',
      sourcefile: file,
      tsconfigRaw,
    });
    return { code: HAS_LUA.test(file) ? shortenLua(script.code, this.parse(script.code)) : script.code, map: null };
  },
  async renderChunk(code, chunk) {
    const hasTable = chunk.moduleIds.some((file) => file.endsWith('/protocols/lock-types.ts'));
    const short = await minify(hasTable ? loadingTypesLate(code) : code, {
      compress: false,
      mangle: NAMES,
      module: false,
      ecma: 2022,
    });
    const script = await transform(short.code, {
      target: 'es2022',
      minifyWhitespace: true,
      minifySyntax: true,
      lineLimit: LONGEST_LINE,
    });
    return { code: script.code, map: null };
  },
} satisfies Plugin;

/** The sources write it as the linter wants it. No minifier knows that nobody changes `Number`. */
function shortenInfinity(code: string): string {
  return code
    .replaceAll('Number.POSITIVE_INFINITY', '(Infinity)')
    .replaceAll('Number.NEGATIVE_INFINITY', '(-Infinity)');
}

/** Moves the `require` of each lock type to where `lock-types` uses it: into a function. */
function loadingTypesLate(code: string): string {
  const types = [...code.matchAll(/^const (\w+) = (require\('[^']*-type\.js'\));\n/gm)];
  return types.reduce((late, [line, name, load]) => {
    return late.replace(line, '').replace(new RegExp(`\\b${name}\\.`, 'g'), `${load}.`);
  }, code);
}

export async function bundle(entries: Entries, folder: string): Promise<void> {
  const bundled = await rollup({
    input: entries,
    plugins: [SOURCES],
    external: (id) => !/^[./]/.test(id),
    treeshake: { moduleSideEffects: (id) => Object.values(entries).includes(id) },
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
    freeze: false,
    hoistTransitiveImports: false,
    // One letter for what the chunks take from each other: a bundler of an application keeps these names, as they are
    // properties of an object. In a stack trace nothing has them.
    minifyInternalExports: true,
    paths: MAPPED,
    chunkFileNames: 'chunks/[name].js',
    manualChunks: Object.fromEntries(Object.entries(SHARED).map(([name, files]) => [name, files.map(inLib)])),
  });
  await bundled.close();
}
