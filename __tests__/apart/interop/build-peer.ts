import { execFileSync } from 'node:child_process';
import { JAVA } from './peer';
import { nameOf, versions } from './versions';

/** Builds the Java side before the tests. Maven does not rebuild what is up to date in its target/. */
export default function build(): void {
  try {
    const { spring, lettuce, redisson } = versions;
    const properties = Object.entries({
      'spring.version': spring,
      'lettuce.version': lettuce,
      'redisson.version': redisson,
      'build.name': nameOf(versions),
    }).map(([name, value]) => `-D${name}=${value}`);
    execFileSync('mvn', ['-q', '-B', '-f', JAVA, ...properties, 'process-classes'], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  } catch (error) {
    const { stdout = '', code } = error as { stdout?: string; code?: string };
    throw new Error(code === 'ENOENT' ? 'These tests need java (17 or later) and mvn.' : `mvn failed:\n${stdout}`);
  }
}
