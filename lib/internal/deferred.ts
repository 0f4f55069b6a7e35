/** A promise that its owner resolves. */
export class Deferred<T = void> {
  readonly promise: Promise<T>;
  resolve!: (value: T | PromiseLike<T>) => void;

  constructor() {
    this.promise = new Promise((resolve) => (this.resolve = resolve));
  }
}
