import { expect, it } from '@jest/globals';
import { sectionOf, withSection } from '../../support/sections';

const PAGE = `# Page

## 1. First

one

### Part

two

## Method

three
`;

it('A section of the benchmarks page ends before the next heading that is not below its own', () => {
  expect(sectionOf(PAGE, '## 1. First')).toBe('## 1. First\n\none\n\n### Part\n\ntwo');
  expect(sectionOf(PAGE, '### Part')).toBe('### Part\n\ntwo');
  expect(sectionOf(PAGE, '## Method')).toBe('## Method\n\nthree');
  expect(sectionOf(PAGE, '## 1')).toBeUndefined();
});

it('A section of the benchmarks page replaces that of an earlier run, and nothing else', () => {
  const changed = withSection(PAGE, '## 1. First\n\nnew', /^## Method$/m);
  expect(changed).toBe('# Page\n\n## 1. First\n\nnew\n\n## Method\n\nthree\n');
  expect(withSection(changed, '## 1. First\n\nnew', /^## Method$/m)).toBe(changed);
});

it('A section of the benchmarks page is added before a heading, or at the end', () => {
  expect(withSection(PAGE, '## New\n\nnew', /^## Method$/m)).toContain('two\n\n## New\n\nnew\n\n## Method\n');
  expect(withSection(PAGE, '## New\n\nnew').endsWith('three\n\n## New\n\nnew\n')).toBe(true);
});
