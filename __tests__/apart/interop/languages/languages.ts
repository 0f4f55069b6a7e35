import { go } from './go/language';
import { java } from './java/language';
import type { Language } from './language';
import { node } from './node/language';
import { python } from './python/language';
import { rust } from './rust/language';

export const LANGUAGES: readonly Language[] = [python, node, go, rust, java];

/** The environment variable with the names of the libraries that the tests run with, or of their languages. */
export const SELECTED = 'INTEROP_LIBRARIES';

const selected = process.env[SELECTED]?.split(',');

/** The libraries of a language that were asked for: all, unless some were named. */
export function librariesOf({ name, libraries }: Language, names: readonly string[] | undefined = selected) {
  if (names === undefined || names.length === 0 || names.includes(name)) return libraries;
  return libraries.filter(({ id }) => names.includes(id));
}
