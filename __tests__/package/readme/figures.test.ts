import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { readmeTable } from '../../../support/readme-table';
import { ROOT, readPage } from './pages';

it('README has the table that is made of the figures of the bench', () => {
  const table = readmeTable(JSON.parse(readFileSync(join(ROOT, 'docs/benchmarks.json'), 'utf8')));
  expect(table.split('\n').length).toBeGreaterThanOrEqual(8);
  expect(readPage('README.md')).toContain(`\n\n${table}\n\n`);
});
