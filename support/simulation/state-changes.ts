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

  /** What may follow on each state, as docs/architecture.md has it. */
  get diagram(): string {
    const following = new Map<string, string[]>();
    for (const name of this.#counts.keys()) {
      const [kind, from, to = ''] = name.split('/');
      const state = `${kind} ${from}`;
      following.set(state, [...(following.get(state) ?? []), to]);
    }
    const rows = [...following].map(([state, all]) => `| ${state} | ${all.join(' · ')} |`);
    // Of one kind together, in whichever order the modules were loaded.
    const kindOf = (row: string) => row.split(' ', 2).join(' ');
    rows.sort((one, other) => (kindOf(one) < kindOf(other) ? -1 : Number(kindOf(one) > kindOf(other))));
    return ['| state | what may follow |', '|---|---|', ...rows].join('\n');
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
