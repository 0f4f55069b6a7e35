/** @jest-config-loader esbuild-register */
import { join } from 'node:path';
import type { Config } from 'jest';
import config from '../../jest.config';

/** For `npm run bounds`: the tests of a library of which one constant is another. */
const [[pattern, [, options]]] = Object.entries(config.transform as object) as [[string, [string, object]]];

export default {
  ...config,
  rootDir: join(__dirname, '..', '..'),
  transform: { [pattern]: ['<rootDir>/scripts/bounds/transformer.cjs', options] },
} satisfies Config;
