import { type Check, checkOptions, wholeNumber } from '../internal/validation';
import type { SemaphoreOptions } from '../options';
import type { Permits } from '../protocols/semaphore-read-write/shared-kinds';

/** A new object: the number may be changed. */
export function semaphoreSettings(options: SemaphoreOptions): Permits {
  const permits: Check<unknown> = (name, value) => wholeNumber(name, value, 1);
  checkOptions({ permits }, options);
  // Also when it is missing: without a number nobody could enter.
  return { count: wholeNumber('permits', options.permits, 1) };
}
