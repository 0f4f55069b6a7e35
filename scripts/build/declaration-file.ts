/** One `.d.ts` file, as tsc writes it: its statements begin at the begin of a line, and their other lines do not. */

/** A name, and the file that has it under this name. `*`: all names of the file. */
export interface Source {
  readonly path: string;
  readonly name: string;
}

interface Declaration {
  /** `undefined`: it declares nothing, such as `export {}`. */
  readonly name: string | undefined;
  readonly text: string;
}

/** `import { a, type b as c } from './d';`, or the same with `export`. */
interface Link {
  readonly isExport: boolean;
  readonly isType: boolean;
  readonly path: string;
  /** As they are called here, and there. */
  readonly names: readonly { readonly here: string; readonly there: string; readonly text: string }[];
}

const LINK = /^(import|export) (type )?(?:\{([^}]*)\}|\*) from '([^']*)';$/;
const DECLARED = /^(?:export )?(?:declare )?(?:abstract )?(?:class|const|enum|function|interface|type) (\w+)/m;
const COMMENT = /\/\*[\s\S]*?\*\//g;
const INLINE_IMPORT = /import\('([^']*)'\)\.(\w+)/g;

export class DeclarationFile {
  readonly #declarations: Declaration[] = [];
  readonly #links: Link[] = [];

  constructor(source: string) {
    for (const text of statements(source)) {
      const [, keyword, type, names, path] = LINK.exec(text) ?? [];
      if (path === undefined) this.#declarations.push({ name: DECLARED.exec(code(text))?.[1], text });
      else this.#links.push({ isExport: keyword === 'export', isType: type !== undefined, path, names: linked(names) });
    }
  }

  /** All that an entry point offers. */
  get names(): string[] {
    const declared = this.#declarations.flatMap(({ name }) => name ?? []);
    const exported = this.#links.filter(({ isExport }) => isExport);
    return [...declared, ...exported.flatMap(({ names }) => names.map(({ here }) => here))];
  }

  /** The files all of whose names are names of this one. */
  get wholes(): string[] {
    return this.#links.filter(({ isExport, names }) => isExport && names.length === 0).map(({ path }) => path);
  }

  /** What the declaration of this name refers to: names of this file, and of others. */
  uses(name: string): { here: string[]; elsewhere: Source[] } {
    const declared = this.#declarations.filter((declaration) => declaration.name === name);
    const text = code(declared.map(({ text }) => text).join('\n'));
    const words = wordsOf(text).add(name);
    const inline = [...text.matchAll(INLINE_IMPORT)].map(([, path = '', there = '']) => ({ path, name: there }));
    const links = this.#links.flatMap(({ path, names }) => {
      return names.filter(({ here }) => words.has(here)).map(({ there }) => ({ path, name: there }));
    });
    return { here: this.names.filter((own) => own !== name && words.has(own)), elsewhere: [...inline, ...links] };
  }

  /** Its text with the declarations of these names, and with what they import. */
  with(wanted: ReadonlySet<string>): string {
    const kept = this.#declarations.filter(({ name }) => name === undefined || wanted.has(name));
    const words = wordsOf(code(kept.map(({ text }) => text).join('\n')));
    const links = this.#links.flatMap((link) => {
      if (link.names.length === 0) return link.isExport ? [`export * from '${link.path}';`] : [];
      const names = link.names.filter(({ here }) => (link.isExport ? wanted : words).has(here));
      if (names.length === 0) return [];
      const list = names.map(({ text }) => text).join(', ');
      return [`${link.isExport ? 'export' : 'import'} ${link.isType ? 'type ' : ''}{ ${list} } from '${link.path}';`];
    });
    return [...links, ...kept.map(({ text }) => text), ''].join('\n');
  }
}

/** Each with its comments before it. */
function statements(source: string): string[] {
  const found: string[] = [];
  for (const line of source.trimEnd().split('\n')) {
    const last = found.at(-1);
    const continues = last !== undefined && (/^[\s}]/.test(line) || code(last).trim() === '');
    if (continues) found[found.length - 1] = `${last}\n${line}`;
    else found.push(line);
  }
  return found;
}

function linked(names: string | undefined): Link['names'] {
  const texts = names?.split(',').map((text) => text.trim()) ?? [];
  return texts.flatMap((text) => {
    const [there = '', here = there] = text.replace(/^type /, '').split(' as ');
    return there === '' ? [] : [{ here, there, text }];
  });
}

function wordsOf(text: string): Set<string> {
  return new Set(text.match(/\w+/g));
}

/** Without comments. */
function code(text: string): string {
  return text.replaceAll(COMMENT, '');
}
