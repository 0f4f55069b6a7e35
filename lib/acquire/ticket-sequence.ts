/** Makes the tickets of a registry: owner values, each for one acquisition only. */
export class TicketSequence {
  readonly #registryId: string;
  #count = 0;

  constructor(registryId: string) {
    this.#registryId = registryId;
  }

  next(): string {
    return `${this.#registryId}:${++this.#count}`;
  }
}
