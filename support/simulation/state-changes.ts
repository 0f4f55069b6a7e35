import Table from 'cli-table3';
import type { States } from '../../lib/internal/states';

/** How often the things that have a life in the library changed their states. */
export class StateChanges {
  /** By `nameOf`: 0 for a change that may be made, and was not. */
  readonly #counts = new Map<string, number>();

  /** From now on those in this module instance of the library are counted. */
  count(states: typeof States): void {
    for (const { kind, following } of states.all) {
      for (const [from, all] of Object.entries(following)) {
        for (const to of all) this.#counts.set(nameOf(kind, from, to), 0);
      }
    }
    states.onChange = (kind, from, to) => {
      const name = nameOf(kind, from, to);
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    };
  }

  /** One row for each change that may be made. */
  get table(): string {
    const table = new Table({ head: ['of a', 'from', 'to', 'times'], style: { head: [], border: [] } });
    for (const [name, times] of this.#counts) table.push([...name.split('/'), times || 'never']);
    return table.toString();
  }
}

function nameOf(kind: string, from: string, to: string): string {
  return `${kind}/${from}/${to}`;
}
