import { expect, it } from '@jest/globals';
import { MUTATIONS, mutate } from './mutations';
import { bundleLibrary } from './process/library';

it('Each fix that the simulation takes out stands in the compiled library once', () => {
  const bundle = bundleLibrary();
  const stale = MUTATIONS.flatMap(({ name }) => {
    try {
      return mutate(bundle, name) === bundle ? [`"${name}" changes nothing`] : [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  expect(stale).toEqual([]);
});
