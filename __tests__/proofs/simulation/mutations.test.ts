import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { type Mutation, misplaced, mutations } from '../../../support/mutations';
import { findCode, placesIn } from '../../../support/places';

it('What a mutation changes is in its place of the library once', () => {
  expect(misplaced()).toEqual([]);
});

it('Each mutation is one that something finds', () => {
  const root = join(__dirname, '..', '..', '..');
  const isFound = ({ simulation, soak, test }: Mutation) =>
    test === undefined ? (simulation ?? soak) !== undefined : existsSync(join(root, test));
  expect(mutations.filter((one) => !isFound(one)).map(({ name }) => name)).toEqual([]);
});

it('A place of the library is a class, its members, a function or a constant, by its name', () => {
  const text = "const é = '1';\nexport class A {\n  #b = 1;\n  get c() {\n    return this.#b;\n  }\n}\nfunction d() {}";
  const places = placesIn('a.ts', text).map(({ name, start, end }) => [name, text.slice(start, end)]);
  expect(places).toEqual([
    ['é', "é = '1'"],
    ['A', expect.stringMatching(/^(export )?class A .+}$/s)],
    ['A.#b', '#b = 1;'],
    ['A.c', 'get c() {\n    return this.#b;\n  }'],
    ['d', 'function d() {}'],
  ]);
});

it.each([
  ['a(b, c)', 'x = a(\n  b,\n  c)', [[4, 16]]],
  ['a.b', 'da.b + a.bc + a.b + a!b', [[14, 17]]],
  [
    'a',
    'a a',
    [
      [0, 1],
      [2, 3],
    ],
  ],
  ['a', 'b', []],
])('Code is found as a whole, however it is broken into lines: %s in %j', (code, text, found) => {
  expect(findCode(code, text).map(({ start, end }) => [start, end])).toEqual(found);
});
