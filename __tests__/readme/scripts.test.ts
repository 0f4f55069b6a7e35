import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { libraryScripts } from '../../support/all-scripts';

it('docs/operations.md lists every script that the library sends, by a name of its own', () => {
  const page = readFileSync(join(__dirname, '../../docs/operations.md'), 'utf8');
  const [, section = ''] = /\n### Scripts\n(.*?)\n## /s.exec(page) ?? [];
  const rows = [...section.matchAll(/^\| (`.*`|no format) \| (`.*`) \|$/gm)];
  const listed = rows.flatMap(([, formats = '', scripts = '']) =>
    formats.split(', ').flatMap((format) =>
      scripts.split(', ').map((script) => {
        const name = script.replaceAll('`', '');
        return format === 'no format' ? name : `${name} (${format.replaceAll('`', '')})`;
      }),
    ),
  );
  expect(
    libraryScripts()
      .map(({ name }) => name)
      .sort(),
  ).toEqual(listed.sort());
});
