import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Made, MutantsOfFile } from '../../support/mutants';

const ROOT = join(__dirname, '../..');
const ofStryker = createRequire(require.resolve('@stryker-mutator/core'));

/** The part of Stryker's instrumenter that is used here. */
interface Instrumenter {
  instrument(
    files: readonly { readonly name: string; readonly content: string; readonly mutate: true }[],
    options: object,
  ): Promise<{ readonly mutants: readonly Required<Made>[] }>;
}

const LOGGER = { debug: () => undefined, info: () => undefined, isDebugEnabled: () => false };
const OPTIONS = { plugins: null, excludedMutations: [], ignorers: [] };

/** All mutants that Stryker makes of `lib`. No test runs. */
export async function allMutants() {
  const url = pathToFileURL(ofStryker.resolve('@stryker-mutator/instrumenter')).href;
  // esbuild would make a `require` of an import, and it is an ES module.
  const load = new Function('url', 'return import(url)');
  const { Instrumenter } = await load(url);
  // Only what it finds is of use, and not what it prints.
  const instrumenter: Instrumenter = new Instrumenter(LOGGER, undefined, () => '');
  const all = [];
  for (const file of readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    const name = join('lib', file);
    const content = readFileSync(join(ROOT, name), 'utf8');
    const { mutants } = await instrumenter.instrument([{ name, content, mutate: true }], OPTIONS);
    const described = new MutantsOfFile(name, content);
    for (const { replacement, location } of mutants) {
      // Its lines count from 0, those of a report from 1.
      const from1 = ({ line, column }: Made['location']['start']) => ({ line: line + 1, column: column + 1 });
      all.push(described.mutant({ replacement, location: { start: from1(location.start), end: from1(location.end) } }));
    }
  }
  return all;
}
