import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A name of a declaration, and the file that declares it. */
interface Declared {
  readonly file: string;
  readonly name: string;
}

/** A file of declarations, as tsc writes it. */
interface Declarations {
  /** The texts by their names, without comments. */
  readonly own: Map<string, string>;
  /** What the file calls by this name, and has from another file. */
  readonly imported: Map<string, Declared>;
  readonly exported: Map<string, Declared>;
}

const STATEMENT = /\n(?=(?:export|import|declare|abstract|class|interface|type|const|function|enum)\b)/;
const FROM = /^(?:import|export) (?:type )?\{(.*)\} from ['"](\..*)['"];?$/s;
const NAMED = /^(?:export |declare |default |abstract )*(?:class|interface|type|const|function|enum|let|var) ([\w$]+)/;
const INLINE = /import\(["'](\.[^"']+)["']\)\.([\w$]+)/g;

/**
 * The types that these entry points export, and those that they are made of. It does not matter in which file a type is, in
 * which order the types are, and what their comments say.
 */
export class PublicTypes {
  readonly #files = new Map<string, Declarations>();

  /** The names that this file exports. */
  namesOf(entry: string): string[] {
    return [...this.#read(entry).exported.keys()].sort();
  }

  /** The digests of the types, by their names. Several types may have one name. */
  digests(entries: readonly string[]): Record<string, string[]> {
    const found = new Map<string, { name: string; text: string }>();
    const follow = ({ file, name }: Declared): void => {
      const { own, imported, exported } = this.#read(file);
      const text = own.get(name);
      const from = imported.get(name) ?? exported.get(name);
      if (text === undefined) {
        if (from !== undefined && (from.file !== file || from.name !== name)) follow(from);
        return;
      }
      if (found.has(`${file} ${name}`)) return;
      found.set(`${file} ${name}`, { name, text: text.replace(INLINE, '$2').replaceAll(/\s+/g, ' ').trim() });
      for (const [, path = '', inline = ''] of text.matchAll(INLINE))
        follow({ file: resolved(file, path), name: inline });
      for (const [word] of text.matchAll(/[\w$]+/g))
        if (own.has(word) || imported.has(word)) follow({ file, name: word });
    };
    for (const file of entries)
      for (const { file: from, name } of this.#read(file).exported.values()) follow({ file: from, name });
    const texts: Record<string, string[]> = {};
    for (const { name, text } of found.values()) texts[name] = [...(texts[name] ?? []), text];
    const names = Object.keys(texts).sort();
    return Object.fromEntries(names.map((name) => [name, (texts[name] ?? []).map(digest).sort()]));
  }

  #read(file: string): Declarations {
    const known = this.#files.get(file);
    if (known !== undefined) return known;
    const read: Declarations = { own: new Map(), imported: new Map(), exported: new Map() };
    this.#files.set(file, read);
    const text = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
    for (const statement of `\n${text}`.split(STATEMENT).map((one) => one.trim())) {
      const [, names, path] = FROM.exec(statement) ?? [];
      const [, own] = NAMED.exec(statement) ?? [];
      if (path !== undefined) {
        const from = resolved(file, path);
        for (const [name, local] of pairsIn(names)) {
          (statement.startsWith('import') ? read.imported : read.exported).set(local, { file: from, name });
        }
      } else if (own !== undefined) {
        const members = statement
          .replace(/^(?:export |declare |default )+/, '')
          .replaceAll(/^\s*private (?!constructor)[^;]*;$/gm, '');
        read.own.set(own, `${read.own.get(own) ?? ''}${members}\n`); // a function has several signatures
        if (statement.startsWith('export')) read.exported.set(own, { file, name: own });
      } else if (!/^(export \{\};?|import .* from ['"][^.].*|#!.*)?$/s.test(statement)) {
        throw new Error(`${file} has a statement that this test cannot read: ${statement}`);
      }
    }
    return read;
  }
}

/** `a, type b as c` */
function pairsIn(names = ''): [name: string, local: string][] {
  const parts = names.split(',').map((part) => part.trim().replace(/^type /, ''));
  return parts
    .filter((part) => part !== '')
    .map((part) => part.split(' as ') as [string, string?])
    .map(([name, local = name]) => [name, local]);
}

function resolved(file: string, path: string): string {
  const base = join(dirname(file), path.replace(/\.js$/, ''));
  const found = [`${base}.d.ts`, join(base, 'index.d.ts')].find((one) => existsSync(one));
  if (found === undefined) throw new Error(`${file} imports ${path}, which is not there`);
  return found;
}

function digest(text: string): string {
  return createHash('sha1').update(text).digest('hex').slice(0, 12);
}
