import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** The tests that have to pass in vitest too. `__tests__/testing/frameworks.test.ts` runs them. */
export default defineConfig({
  test: {
    root: join(__dirname, '..'),
    include: ['__tests__/**/*.vitest.ts'],
    pool: 'threads',
    poolOptions: { threads: { singleThread: true } },
  },
});
