require('esbuild-register');

exports.strykerPlugins = require('./runner.ts').strykerPlugins;
