import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { type Mutation, mutations, staleTexts } from '../../../support/mutations';

it('Each text that a mutation replaces is in the library once', () => {
  expect(staleTexts()).toEqual([]);
});

it('Each mutation is one that something finds', () => {
  const root = join(__dirname, '..', '..', '..');
  const isFound = ({ simulation, soak, test }: Mutation) =>
    test === undefined ? (simulation ?? soak) !== undefined : existsSync(join(root, test));
  expect(mutations.filter((one) => !isFound(one)).map(({ name }) => name)).toEqual([]);
});
