import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { nameOf, SELECTED, VERSIONS } from './versions';

/*
 * `npm run test:interop -- [--all-versions] [arguments of jest]`: the tests beside the newest Java libraries, or also
 * beside older ones. Ends with the exit code 1 when any of them failed.
 */

const { values, positionals, tokens } = parseArgs({
  options: { 'all-versions': { type: 'boolean', default: false } },
  allowPositionals: true,
  strict: false,
  tokens: true,
});
const unknown = tokens.filter((token) => token.kind === 'option' && token.name !== 'all-versions');
if (unknown.length > 0) {
  const names = unknown.map((token) => `"${token.kind === 'option' ? token.rawName : ''}"`).join(', ');
  process.stderr.write(
    `Unknown option ${names}. There is --all-versions; other arguments are patterns of test files\n`,
  );
  process.exit(64);
}

const jest = [require.resolve('jest/bin/jest'), '--config', join(__dirname, 'jest.config.ts')];
const failed: string[] = [];
for (const [position, versions] of VERSIONS.entries()) {
  if (position > 0 && !values['all-versions']) break;
  const name = nameOf(versions);
  process.stdout.write(`\nbeside ${name}\n`);
  for (const files of runsOf(position)) {
    const { status } = spawnSync(process.execPath, [...jest, ...files], {
      stdio: 'inherit',
      env: { ...process.env, [SELECTED]: String(position) },
    });
    if (status !== 0) failed.push(name);
  }
}
/** The files of each run, one after the other. Shares are measured beside the newest versions only. */
function runsOf(position: number): readonly (readonly string[])[] {
  if (positionals.length > 0) return [positionals];
  return position > 0 ? [['interop.test']] : [['interop.test', 'shares'], ['quick']];
}

if (failed.length > 0) process.stderr.write(`\nfailed beside: ${failed.join(', ')}\n`);
process.exitCode = failed.length > 0 ? 1 : 0;
