import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { isIn, readReport, survivorsOf, withoutMutant } from '../../support/mutants';

it('`npm run mutate` lists the mutants that no test found, apart from those that have a reason for what they replace', () => {
  const source = 'function a() {\n  if (b &&\n  c) d();\n}';
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
  expect(left[0]).toMatchObject({ span: 'lib/a.ts:2:6-3:3', place: 'a', original: 'b &&\n  c' });
  const within = (part: string, place = 'a') =>
    survivorsOf(left, { [place]: { 'd does nothing': [['b &&\n  c', 'false', part]] } });
  expect(within('if (b')).toEqual({ harmless: [left[0]], survivors: [left[1]] });
  expect(within('while (b')).toEqual({ harmless: [], survivors: left });
  expect(within('if (b', 'd')).toEqual({ harmless: [], survivors: left });
});

it('`npm run mutate -- --reasons` lists what no mutant is any more', () => {
  const mutant = { span: '', file: '', place: 'A', original: 'b?.c', replacement: 'b.c', line: 'if (b?.c) {' };
  const listed = (place: string, ...one: [string, string, string?]) =>
    withoutMutant({ [place]: { 'b is there': [one] } }, [mutant]);
  expect(listed('A', 'b?.c', 'b.c')).toEqual([]);
  expect(listed('A', 'b?.c', 'b.c', 'if (b')).toEqual([]);
  expect(listed('A', 'b?.c', 'b.c', 'return b')).toEqual(['A: ["b?.c","b.c","return b"]']);
  expect(listed('A', 'b?.d', 'b.d')).toEqual(['A: ["b?.d","b.d"]']);
  expect(listed('B', 'b?.c', 'b.c')).toEqual(['B: ["b?.c","b.c"]']);
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
