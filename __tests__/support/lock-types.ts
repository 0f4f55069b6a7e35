/** Every lock type, for tests of what all of them have to do. */
export { LOCK_TYPES } from '../../lib/protocols/lock-types';
