import type { Ticket } from './ticket';

/**
 * The tickets of one lock by their ids, in the order in which they came. There is seldom more than one: one costs no
 * Map. A base class: an object for it would cost memory in each lock.
 */
export abstract class Tickets {
  #only: Ticket | undefined;
  #all: Map<string, Ticket> | undefined;

  get size(): number {
    return this.#all?.size ?? Number(this.#only !== undefined);
  }

  protected get first(): Ticket | undefined {
    return this.#only ?? this.#all?.values().next().value;
  }

  protected ticketWith(id: string): Ticket | undefined {
    return this.#only?.id === id ? this.#only : this.#all?.get(id);
  }

  protected add(ticket: Ticket): void {
    if (this.size === 0) {
      this.#only = ticket;
      return;
    }
    this.#all ??= new Map();
    if (this.#only !== undefined) this.#all.set(this.#only.id, this.#only);
    this.#only = undefined;
    this.#all.set(ticket.id, ticket);
  }

  protected remove(id: string): void {
    if (this.#only?.id === id) this.#only = undefined;
    if (this.#all?.delete(id) && this.#all.size === 0) this.#all = undefined;
  }

  protected *all(): IterableIterator<Ticket> {
    if (this.#only !== undefined) yield this.#only;
    if (this.#all !== undefined) yield* this.#all.values();
  }
}
