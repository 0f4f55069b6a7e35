import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from '@jest/globals';
import manifest from '../../package.json';

const ROOT = join(__dirname, '../..');

/** The package as it would be installed. The test file that is loaded first builds it, once for each run. */
export const BUILT_PACKAGE = join(process.env.TEST_RUN as string, 'package');

const MANIFEST = join(BUILT_PACKAGE, 'package.json');
const FAILED = join(BUILT_PACKAGE, 'failed');

const isBuilt = buildOnce();

/** For `it` or `describe` of tests of the built package. Where it does not compile, one test says so, and these are skipped. */
export const ifBuilt = <T extends object>(block: T): T => (isBuilt ? block : ((block as { skip?: T }).skip ?? block));

function buildOnce(): boolean {
  if (mkdirSync(BUILT_PACKAGE, { recursive: true }) === undefined) {
    // Another file of this run builds it.
    const signal = new Int32Array(new SharedArrayBuffer(4));
    while (!existsSync(MANIFEST) && !existsSync(FAILED)) Atomics.wait(signal, 0, 0, 20);
    return existsSync(MANIFEST);
  }
  const builder = ['-r', 'esbuild-register', join(ROOT, 'scripts/build.ts'), join(BUILT_PACKAGE, 'dist')];
  try {
    execFileSync(process.execPath, builder, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' });
    const { exports, name, type } = manifest;
    writeFileSync(MANIFEST, JSON.stringify({ exports, name, type }));
    return true;
  } catch (error) {
    writeFileSync(FAILED, '');
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    it('The package compiles', () => {
      throw new Error(`${stdout}\n${stderr}`);
    });
    return false;
  }
}
