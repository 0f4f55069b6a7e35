import { readFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { type Replacement, type WrongBuild, wrongBuilds } from './wrong-builds';

const root = join(__dirname, '..', '..');

/** Bundles the worker and the library into one file: plain JavaScript starts sooner than a loader for TypeScript. */
export async function bundleWorker(outfile: string, wrong: WrongBuild | undefined): Promise<void> {
  const wrongBuild = new WrongBuildPlugin(wrong === undefined ? [] : wrongBuilds[wrong]);
  await build({
    entryPoints: [join(__dirname, 'worker', 'main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
    plugins: [wrongBuild.plugin],
  });
  wrongBuild.assertComplete();
}

class WrongBuildPlugin {
  readonly #found: Map<Replacement, number>;

  constructor(replacements: readonly Replacement[]) {
    this.#found = new Map(replacements.map((replacement) => [replacement, 0]));
  }

  get plugin(): Plugin {
    return {
      name: 'wrong-build',
      setup: ({ onLoad }) => {
        const lib = join(root, 'lib') + sep;
        onLoad({ filter: /\.ts$/ }, async ({ path }) => {
          if (this.#found.size === 0 || !path.startsWith(lib)) return undefined;
          return { contents: this.#apply(await readFile(path, 'utf8')), loader: 'ts' };
        });
      },
    };
  }

  assertComplete(): void {
    for (const [{ find }, count] of this.#found) {
      if (count !== 1)
        throw new Error(`The wrong build replaces a text that is in lib ${count} times, not once: ${find}`);
    }
  }

  #apply(source: string): string {
    let text = source;
    for (const [replacement, count] of this.#found) {
      const parts = text.split(replacement.find);
      this.#found.set(replacement, count + parts.length - 1);
      text = parts.join(replacement.replace);
    }
    return text;
  }
}
