import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { forgetFigures } from './figures';
import { LANGUAGES, librariesOf, SELECTED } from './languages';
import { competeForMinutes } from './minutes';
import { writePage } from './page';

export interface LanguageOptions {
  /** The tables of docs/other-languages.md get the new versions and figures; rows of other libraries stay. */
  readonly page: boolean;
  /** In place of the tests: for so many minutes, as in minutes.ts. */
  readonly minutes?: number | undefined;
  /** Node's part in them. */
  readonly beside: readonly string[];
}

/**
 * Runs the tests beside the libraries that are named, or all of a language that is, or all. Returns the exit code.
 */
export async function runLanguages(names: readonly string[], options: LanguageOptions): Promise<number> {
  const known = LANGUAGES.flatMap(({ name, libraries }) => [name, ...libraries.map(({ id }) => id)]);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    process.stderr.write(
      `No language or library is called ${unknown.map((name) => `"${name}"`).join(', ')}. There are ${known.join(', ')}\n`,
    );
    return 64;
  }
  const wanted = LANGUAGES.filter((language) => librariesOf(language, names).length > 0);
  let isMissing = false;
  const present = wanted.filter(({ title, missing, required }) => {
    const needed = missing();
    if (needed === undefined) return true;
    const why = `${title}, because there is no ${needed} on this machine`;
    if (required && process.env.CI) {
      process.stderr.write(`\nmissing: ${why}, and CI is set\n`);
      isMissing = true;
    } else {
      process.stdout.write(`\nleft out: ${why}\n`);
    }
    return false;
  });
  if (isMissing) return 1;
  if (present.length === 0) return 0;
  if (options.minutes !== undefined) return competeForMinutes(present, names, options.minutes, options.beside);
  forgetFigures();
  const jest = [require.resolve('jest/bin/jest'), '--config', join(__dirname, 'jest.config.ts')];
  const { status } = spawnSync(process.execPath, [...jest, ...present.map(({ name }) => `/languages/${name}/`)], {
    stdio: 'inherit',
    env: {
      ...process.env,
      [SELECTED]: present.flatMap((language) => librariesOf(language, names).map(({ id }) => id)).join(),
    },
  });
  if (status === 0 && options.page) writePage();
  return status ?? 1;
}
