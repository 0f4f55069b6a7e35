import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { libraryScripts } from '../../../support/all-scripts';

/** `spring` for "`spring` (`spin`, `pub-sub`)": what is in parentheses explains. */
const formatsIn = (cell: string) =>
  cell === 'none' ? [''] : quoted(cell.replaceAll(/\(.*?\)/g, '')).map((format) => ` (${format})`);

const quoted = (text: string) => [...text.matchAll(/`(.*?)`/g)].map(([, word = '']) => word);

it('docs/operations.md lists every script that the library sends, by a name of its own', () => {
  const page = readFileSync(join(__dirname, '../../../docs/operations.md'), 'utf8');
  const [, section = ''] = /\n\*\*Scripts\.\*\*(.*?)\n#/s.exec(page) ?? [];
  const listed = [...section.matchAll(/^\| (.*) \| (.*) \|$/gm)].flatMap(([, formats = '', scripts = '']) =>
    formatsIn(formats).flatMap((suffix) => quoted(scripts).map((script) => script + suffix)),
  );
  expect(
    libraryScripts()
      .map(({ name }) => name)
      .sort(),
  ).toEqual(listed.sort());
});
