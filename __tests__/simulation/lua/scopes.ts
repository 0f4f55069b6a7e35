/** The local variables of Lua, each with a name of its own in JavaScript, and the temporaries of each function. */
export class Scopes {
  #blocks: Map<string, string>[] = [];
  #temporaries: string[][] = [];
  #count = 0;

  open(): void {
    this.#blocks.push(new Map());
  }

  close(): void {
    this.#blocks.pop();
  }

  openFunction(): void {
    this.open();
    this.#temporaries.push([]);
  }

  /** Returns the temporaries that the function needs. */
  closeFunction(): readonly string[] {
    this.close();
    return this.#temporaries.pop() ?? [];
  }

  declare(name: string): string {
    const unique = `${name}$${++this.#count}`;
    this.#blocks.at(-1)?.set(name, unique);
    return unique;
  }

  temporary(): string {
    const name = `t$${++this.#count}`;
    this.#temporaries.at(-1)?.push(name);
    return name;
  }

  local(name: string): string | undefined {
    return this.#blocks.findLast((block) => block.has(name))?.get(name);
  }

  read(name: string): string {
    return this.local(name) ?? `globals(${JSON.stringify(name)})`;
  }
}
