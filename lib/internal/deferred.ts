/** A promise that its owner resolves. */
export class Deferred {
  readonly promise: Promise<void>;
  resolve!: () => void;

  constructor() {
    this.promise = new Promise((resolve) => (this.resolve = resolve));
  }
}
