import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import manifest from '../../package.json';
import { until } from './until';

const run = promisify(execFile);
const ROOT = join(__dirname, '../..');

/** ms */
const BUILD_LIMIT = 120_000;

/** The folder of the package as it would be installed. The test file that asks first builds it, once for each run. */
export async function builtPackage(): Promise<string> {
  const folder = join(process.env.TEST_RUN as string, 'package');
  const manifestFile = join(folder, 'package.json');
  const isFirst = await mkdir(folder).then(
    () => true,
    () => false,
  );
  if (isFirst) {
    const builder = join(ROOT, 'scripts/build.ts');
    await run(process.execPath, ['-r', 'esbuild-register', builder, join(folder, 'dist')], { cwd: ROOT });
    const { exports, name, type } = manifest;
    await writeFile(manifestFile, JSON.stringify({ exports, name, type }));
  } else {
    await until(() => existsSync(manifestFile), { within: BUILD_LIMIT });
  }
  return folder;
}
