import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runLanguages } from './languages/run';
import { nameOf, SELECTED, VERSIONS } from './versions';

/*
 * `npm run test:interop -- [--all-versions] [arguments of jest]`: the tests beside the newest Java libraries, or also
 * beside older ones. `-- --languages [--page] [names of languages or libraries]`: those beside the libraries of other
 * languages. `-- --languages --minutes 10 [--beside KINDS] [names]`: ten minutes under load, see languages/minutes.ts. Ends with
 * the exit code 1 when any of them failed.
 */

const OPTIONS = ['all-versions', 'languages', 'page', 'minutes', 'beside'] as const;

/** Of `--beside`: what docs/other-languages.md says that Node processes are to be. */
const MIXTURE = 'spin/sharedWithPollers,pub-sub/sharedWithPollers,spin/sharedWithPollers';

const { values, positionals, tokens } = parseArgs({
  options: Object.fromEntries(
    OPTIONS.map((name) => [name, { type: ['minutes', 'beside'].includes(name) ? 'string' : 'boolean' } as const]),
  ),
  allowPositionals: true,
  strict: false,
  tokens: true,
});
const unknown = tokens.flatMap((token) =>
  token.kind === 'option' && !OPTIONS.some((name) => name === token.name) ? [`"${token.rawName}"`] : [],
);
if (unknown.length > 0) {
  process.stderr.write(
    `Unknown option ${unknown.join(', ')}. There are --all-versions, --languages, --page, --minutes and --beside; other arguments are ` +
      'patterns of test files, or with --languages names of languages or libraries\n',
  );
  process.exit(64);
}

if (values.languages) void runOthers();
else runJava();

async function runOthers(): Promise<void> {
  const { beside = MIXTURE, minutes, page = false } = values as { beside?: string; minutes?: string; page?: boolean };
  if (minutes !== undefined && !(Number(minutes) > 0)) {
    process.stderr.write(`--minutes takes a number above 0, not "${minutes}"\n`);
    process.exit(64);
  }
  const options = { page, minutes: minutes === undefined ? undefined : Number(minutes), beside: beside.split(',') };
  process.exitCode = await runLanguages(positionals, options);
}

function runJava(): void {
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
  if (failed.length > 0) process.stderr.write(`\nfailed beside: ${failed.join(', ')}\n`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

/** The files of each run, one after the other. Shares are measured beside the newest versions only. */
function runsOf(position: number): readonly (readonly string[])[] {
  if (positionals.length > 0) return [positionals];
  return position > 0 ? [['interop.test']] : [['interop.test', 'shares'], ['quick']];
}
