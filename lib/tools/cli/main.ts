#!/usr/bin/env node
import { Signals } from './signals';

// Before anything else is loaded: that takes a while, in which signals come too.
const signals = new Signals();

// By the name of the package: the built file is not as many folders deep as this one.
const version = (): string => (require('redis-lock-registry/package.json') as { version: string }).version;

void import('./program.js').then(({ program }) => program(process.argv.slice(2), signals, version));
