/** What stands in a list carries its own links: to join and to leave costs no search and no allocation. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
}

/** Members in the order in which they joined, each of which can leave at any time. */
export class LinkedList<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;

  get first(): T | undefined {
    return this.#first;
  }

  append(member: T): void {
    member.previous = this.#last;
    if (this.#last === undefined) this.#first = member;
    else this.#last.next = member;
    this.#last = member;
  }

  /** Only for one who is in the list. */
  remove(member: T): void {
    if (member.previous === undefined) this.#first = member.next;
    else member.previous.next = member.next;
    if (member.next === undefined) this.#last = member.previous;
    else member.next.previous = member.previous;
    member.previous = undefined;
    member.next = undefined;
  }
}
