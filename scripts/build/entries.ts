import { join } from 'node:path';
import manifest from '../../package.json';
import type { Entries } from './bundle';

const ROOT = join(__dirname, '../..');

/** `./dist/ioredis/index.js`, of all files that package.json names for Node. */
const FILES = [
  ...Object.values(manifest.exports).flatMap((target) => (typeof target === 'string' ? [] : [target.default])),
  ...Object.values(manifest.bin),
];

/** The entry points of the package. */
export const ENTRIES: Entries = Object.fromEntries(
  FILES.map((file) => {
    const name = file.replace(/^\.\/dist\/|\.js$/g, '');
    return [name, join(ROOT, 'lib', `${name}.ts`)];
  }),
);
