/** On the prototype of a class of this library: which one it is, for every copy of the library in the process. */
const CLASS = Symbol.for('redis-lock-registry.class');

interface Class {
  readonly prototype: object;
}

/**
 * A bundler may have the library in a process several times, as one for each route of an application. `instanceof` of
 * these classes is true for what another copy has made. It goes by these names, as a minifier changes those of classes. A
 * subclass of the application's is its own, and has no copies that we know of.
 */
export function knownAcrossCopies(classes: Readonly<Record<string, Class>>): void {
  for (const [name, type] of Object.entries(classes)) {
    Object.defineProperty(type.prototype, CLASS, { value: name });
    // Not in the class: it would be in its type, and `instanceof` would narrow otherwise.
    Object.defineProperty(type, Symbol.hasInstance, { value: hasInstance });
  }
}

function hasInstance(this: Class, value: unknown): boolean {
  const name = classOf(this.prototype);
  if (name === undefined) return Function.prototype[Symbol.hasInstance].call(this, value);
  if (value === null || !['object', 'function'].includes(typeof value)) return false;
  let prototype: object | null = Object.getPrototypeOf(value);
  while (prototype !== null && classOf(prototype) !== name) prototype = Object.getPrototypeOf(prototype);
  return prototype !== null;
}

/** `undefined`: it is no prototype of a class of ours, though it may inherit from one. */
function classOf(prototype: object): unknown {
  return Object.getOwnPropertyDescriptor(prototype, CLASS)?.value;
}
