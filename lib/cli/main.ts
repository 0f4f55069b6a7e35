#!/usr/bin/env node
import { Signals } from './signals';

// Before anything else is loaded: that takes a while, in which signals come too.
const signals = new Signals();

void import('./program.js').then(({ program }) => program(process.argv.slice(2), signals));
