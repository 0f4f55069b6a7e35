import { join } from 'node:path';
import { build } from 'esbuild';
import { type MutationName, mutating } from '../mutations';

/** Bundles the worker and the library into one file: plain JavaScript starts sooner than a loader for TypeScript. */
export async function bundleWorker(outfile: string, wrong: MutationName | undefined): Promise<void> {
  await build({
    entryPoints: [join(__dirname, 'worker', 'main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
    plugins: [mutating(wrong === undefined ? [] : [wrong])],
  });
}
