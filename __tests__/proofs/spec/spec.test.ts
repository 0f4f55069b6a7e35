import { readdirSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { MODELS } from '../../../scripts/spec/models';
import { FOLDER, moduleText, taskOf } from '../../../scripts/spec/modules';
import { VARIANTS } from '../../../scripts/spec/variants';

// TLC itself runs in `npm run spec`, a part of which is in .ci/run.
it('The specification can be read in one go', () => {
  const modules = readdirSync(FOLDER).filter((file) => file.endsWith('.tla'));
  const lines = modules.map((file) => moduleText(file.replace('.tla', '')).trim().split('\n').length);
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(540);
});

it.each(VARIANTS)(
  'The specification has the text that the wrong variant "$name" replaces, once',
  ({ model, replacements }) => {
    const { module, ...rest } = MODELS[model] as (typeof MODELS)[string];
    const { modules } = taskOf({ module, ...rest }, replacements);
    if (replacements.length > 0) expect(modules[module]).not.toBe(moduleText(module));
  },
);

it('The specification has at least ten wrong variants that every change is checked with', () => {
  const small = VARIANTS.filter(({ model, isSlow }) => MODELS[model]?.size === 'small' && !isSlow);
  expect(small.length).toBeGreaterThanOrEqual(10);
  expect(new Set(VARIANTS.map(({ name }) => name)).size).toBe(VARIANTS.length);
});
