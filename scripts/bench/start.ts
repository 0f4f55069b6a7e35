/** `npm run bench`: makes ready what it needs, and then measures. */

import { prepare } from './prepare';

prepare();
// Only now its packages are there to be loaded.
const { main } = require('./main') as typeof import('./main');
void main();
