import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(__dirname, '..');

/** ms; it builds the library. */
const LIMIT = 500_000;

/** Packs the library as it is published, into a folder. Resolves to the path of the tarball. */
export async function packInto(folder: string): Promise<string> {
  const args = ['pack', '--json', '--pack-destination', folder];
  const { stdout } = await promisify(execFile)('npm', args, { cwd: ROOT, timeout: LIMIT });
  // An array, or since npm 12 an object by name; a script of `prepack` may have printed something before it.
  const [{ filename }] = Object.values(JSON.parse(stdout.slice(stdout.search(/^[[{]/m)))) as [{ filename: string }];
  return join(folder, filename);
}
