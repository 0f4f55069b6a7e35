import { execFileSync } from 'node:child_process';
import { JAVA } from './peer';

/** Builds the Java side before the tests: what there is of it already, in its target/, is not built again. */
export default function build(): void {
  try {
    execFileSync('mvn', ['-q', '-B', '-f', JAVA, 'process-classes'], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    const { stdout = '', code } = error as { stdout?: string; code?: string };
    throw new Error(code === 'ENOENT' ? 'These tests need java (17 or later) and mvn.' : `mvn failed:\n${stdout}`);
  }
}
