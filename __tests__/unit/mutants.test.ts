import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { isIn, readReport, survivorsOf } from '../../support/mutants';

it('`npm run mutate` lists the mutants that no test found, apart from those that have a reason for what they replace', () => {
  const source = 'const a = 1;\n  if (b &&\n  c) d();';
  const location = { start: { line: 2, column: 7 }, end: { line: 3, column: 4 } };
  const mutants = [
    { status: 'Killed', replacement: 'true', location },
    { status: 'Timeout', replacement: '{}', location },
    { status: 'Ignored', replacement: '0', location },
    { status: 'Survived', replacement: 'false', location },
    { status: 'NoCoverage', replacement: 'b || c', location },
  ];
  const path = join(tmpdir(), `mutants-${process.pid}.json`);
  writeFileSync(path, JSON.stringify({ files: { 'lib/a.ts': { source, mutants } } }));
  const judged = readReport(path);
  expect(judged.map(({ isFound }) => isFound)).toEqual([true, true, false, false]);
  const left = judged.filter(({ isFound }) => !isFound);
  expect(left[0]).toMatchObject({ span: 'lib/a.ts:2:6-3:3', original: 'b &&\n  c' });
  const within = (part: string) =>
    survivorsOf(left, { 'lib/a.ts': { 'd does nothing': [['b &&\n  c', 'false', part]] } });
  expect(within('if (b')).toEqual({ harmless: [left[0]], survivors: [left[1]] });
  expect(within('while (b')).toEqual({ harmless: [], survivors: left });
});

it.each([
  ['lib/core/hold.ts', true],
  ['lib/core/**/*.ts', true],
  ['lib/core/hold.ts:9-9', true],
  ['lib/core/hold.ts:8-12', true],
  ['lib/core/hold.ts:9:4-12:8', true],
  ['lib/core/hold.ts:10-12', false],
  ['lib/core/hold.ts:7-8', false],
  ['lib/core/lease.ts', false],
  ['lib/co/**/*.ts', false],
])('`npm run mutate` reports of what it was asked for, and not of earlier runs: %s, %p', (place, isReported) => {
  expect(isIn(['lib/a.ts', place], { file: 'lib/core/hold.ts', span: 'lib/core/hold.ts:9:4-9:20' })).toBe(isReported);
});
