'use strict';
// Loaded before the command line: this process gets a signal when it has just started its command, or, by SIGNAL_AT, when
// that command has just ended (`end`), when this process ends itself (`exit`), or while its modules are loaded (`load`).
// With `threw` and `unpiped`, it gets none, and can start no `cat`: as without memory, and without file descriptors.
const child = require('node:child_process');
const Module = require('node:module');

const { SIGNAL_AT: moment } = process.env;
const signal = (name = 'SIGTERM') => process.kill(process.pid, name);

if (moment === 'exit') process.on('exit', () => signal());

const { _load: load } = Module;
Module._load = (name, ...rest) => {
  if (moment === 'load' && name === 'node:util') {
    Module._load = load;
    signal('SIGUSR1');
  }
  return load(name, ...rest);
};

const { spawn } = child;
child.spawn = (...args) => {
  if (args[0] === 'cat' && moment === 'threw') throw Object.assign(new Error('spawn ENOMEM'), { code: 'ENOMEM' });
  if (args[0] === 'cat' && moment === 'unpiped') return new child.ChildProcess();
  const started = spawn(...args);
  if (args[0] !== 'sh') return started;
  if (moment === 'end') started.on('exit', () => setImmediate(signal));
  else if (moment === 'start') signal();
  return started;
};
