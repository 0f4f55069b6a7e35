import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { codeSpans, ROOT, readPage } from './pages';

/** The sections "## P1: ...", by their number. */
const SECTIONS = readPage('docs/guarantees.md')
  .split(/^## /m)
  .map((text) => ({ promise: /^P\d+/.exec(text)?.[0] ?? '', tests: codeSpans(text).filter(isTest) }))
  .filter(({ promise }) => promise !== '');

function isTest(code: string): boolean {
  return code.startsWith('__tests__/') && code.endsWith('.ts');
}

function cites(file: string, promise: string): boolean {
  return new RegExp(`\\b${promise}\\b`).test(readFileSync(join(ROOT, file), 'utf8'));
}

describe('docs/guarantees.md', () => {
  it('has every guarantee that a test cites', () => {
    const files = readdirSync(join(ROOT, '__tests__'), { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.startsWith('readme'),
    );
    const texts = files.map((file) => readFileSync(join(ROOT, '__tests__', file), 'utf8'));
    const cited = new Set(texts.flatMap((text) => text.match(/\bP\d+\b(?=[ :,)])/g) ?? []));
    expect([...cited].sort()).toEqual(SECTIONS.map(({ promise }) => promise).sort());
  });

  it.each(SECTIONS)('names tests for $promise, and each of them cites it', ({ promise, tests }) => {
    expect(tests).not.toEqual([]);
    expect(tests.filter((test) => !cites(test, promise))).toEqual([]);
  });
});
