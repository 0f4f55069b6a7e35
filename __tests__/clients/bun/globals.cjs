/* What tests import from @jest/globals, under Bun. `rejects` of Bun's own `expect` blocks until the promise settles. */

module.exports = { ...require('bun:test'), expect: require('expect').expect };
