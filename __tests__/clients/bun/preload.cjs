/* Makes tests import `globals` in place of @jest/globals. */

const { readFileSync } = require('node:fs');
const { join } = require('node:path');

Bun.plugin({
  name: 'jest globals',
  setup(build) {
    build.onLoad({ filter: /__tests__.*\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8');
      return { contents: source.replaceAll("'@jest/globals'", `'${join(__dirname, 'globals.cjs')}'`), loader: 'ts' };
    });
  },
});
