'use strict';
// Loaded before the command line: this process gets a SIGTERM when it has just started its command, and, where
// SIGNAL_AT is `end`, when that command has just ended.
const child = require('node:child_process');

const { spawn } = child;
const signal = () => process.kill(process.pid, 'SIGTERM');

child.spawn = (...args) => {
  const started = spawn(...args);
  if (args[0] !== 'sh') return started;
  if (process.env.SIGNAL_AT === 'end') started.on('exit', () => setImmediate(signal));
  else signal();
  return started;
};
