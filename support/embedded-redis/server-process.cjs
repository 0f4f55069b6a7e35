// The process behind start.ts. Plain JavaScript, so that it starts without a loader in 50 ms.
const { join } = require('node:path');
const { createRedisServer } = require('js-redis-server');

// The package does not export its package.json, so it is found from the entry point.
const { version } = require(join(require.resolve('js-redis-server'), '..', '..', 'package.json'));

// The channel closes when the starting process ends, for any reason.
process.on('disconnect', () => process.exit());

createRedisServer().then(({ port }) => process.send({ port, version }));
