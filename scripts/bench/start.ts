/** `npm run bench`: installs and builds what it needs, then measures. */

import { prepare } from './prepare';

try {
  prepare();
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}
// Loaded late: its packages may have been missing before `prepare`.
const { main } = require('./main') as typeof import('./main');
void main();
