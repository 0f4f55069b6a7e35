import { expect, it } from '@jest/globals';
import { staleTexts } from '../../support/mutations';

it('Each text that a mutation replaces is in the library once', () => {
  expect(staleTexts()).toEqual([]);
});
