import { Inject } from '@nestjs/common';
import { type LockOptions, LockRegistry } from 'redis-lock-registry';

const LOCKS = Symbol('locks');

/** Runs the method under the lock of the key that is made of its arguments. */
export function Locked(keyOf: (...args: never[]) => string, options?: LockOptions): MethodDecorator {
  const inject = Inject(LockRegistry);
  return (target, _name, descriptor: PropertyDescriptor) => {
    inject(target, LOCKS);
    const method = descriptor.value as (...args: unknown[]) => unknown;
    descriptor.value = function (this: { [LOCKS]: LockRegistry }, ...args: never[]) {
      return this[LOCKS].run(keyOf(...args), () => method.apply(this, args), options);
    };
  };
}
