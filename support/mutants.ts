import { readFileSync } from 'node:fs';
import { type Place, placesIn } from './places';

/** One small mistake that Stryker puts into the code. */
export interface Mutant {
  /** `file:line:column-line:column`, from line 1 and column 0, as Stryker takes it. */
  readonly span: string;
  readonly file: string;
  /** The class, function or constant that it is in. */
  readonly place: string | undefined;
  readonly original: string;
  readonly replacement: string;
  /** The line that it is in, or begins in. */
  readonly line: string;
}

/** A mutant, and what the tests made of it. */
export interface Judged extends Mutant {
  /** A test failed, did not end, or the file did not even load. */
  readonly isFound: boolean;
  /** A test did not end in time. On a busy machine that may have another reason. */
  readonly isTimedOut: boolean;
}

/**
 * By class, function or constant: why mutants change nothing that anybody can observe, and the mutants of each reason. `within`:
 * a part of the line, where the same text stands in others too. Without files and line numbers, so that it outlives moves.
 */
export type Reasons = Record<string, Record<string, readonly Listed[]>>;

type Listed = readonly [original: string, replacement: string, within?: string];

interface Position {
  readonly line: number;
  readonly column: number;
}

/** A mutant as Stryker tells it, with lines and columns from 1. */
export interface Made {
  readonly replacement?: string;
  readonly location: { readonly start: Position; readonly end: Position };
}

/** The parts of Stryker's report that are used here. */
interface Report {
  readonly files: Record<
    string,
    { readonly source: string; readonly mutants: readonly (Made & { readonly status: string })[] }
  >;
}

/** Ignored: constants of a module, of which Stryker can't choose a mutant later. */
const NOT_JUDGED = new Set(['Ignored', 'Pending', 'CompileError']);
const LEFT_OVER = new Set(['Survived', 'NoCoverage']);

export function readReport(path: string): Judged[] {
  const { files }: Report = JSON.parse(readFileSync(path, 'utf8'));
  return Object.entries(files).flatMap(([file, { source, mutants }]) => {
    const described = new MutantsOfFile(file, source);
    return mutants
      .filter(({ status }) => !NOT_JUDGED.has(status))
      .map((made) => {
        const { status } = made;
        return { ...described.mutant(made), isFound: !LEFT_OVER.has(status), isTimedOut: status === 'Timeout' };
      });
  });
}

/** Says of each mutant of a file what it changes, and where. */
export class MutantsOfFile {
  readonly #file: string;
  readonly #source: string;
  readonly #lines: readonly string[];
  readonly #outermost: readonly Place[];

  constructor(file: string, source: string) {
    this.#file = file;
    this.#source = source;
    this.#lines = source.split('\n');
    this.#outermost = placesIn(file, source).filter(({ name }) => !name.includes('.'));
  }

  mutant({ replacement = '', location: { start, end } }: Made): Mutant {
    const [from, to] = [this.#offset(start), this.#offset(end)];
    return {
      span: `${this.#file}:${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`,
      file: this.#file,
      place: this.#outermost.find((place) => place.start <= from && to <= place.end)?.name,
      original: this.#source.slice(from, to),
      replacement,
      line: this.#lines[start.line - 1] as string,
    };
  }

  #offset({ line, column }: Position): number {
    return this.#lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, column - 1);
  }
}

/**
 * Whether the mutant begins in one of these places: `file`, `file:line-line`, or all files of a folder. Stryker's report also
 * has what it judged in earlier runs.
 */
export function isIn(places: readonly string[], { span, file }: Pick<Mutant, 'span' | 'file'>): boolean {
  const [, line] = /:(\d+):/.exec(span) ?? [];
  return places.some((place) => {
    const [, path = '', first = 0, last = Number.POSITIVE_INFINITY] =
      /^([^:]+)(?::(\d+)(?::\d+)?-(\d+)(?::\d+)?)?$/.exec(place) ?? [];
    const isFile = path.endsWith('/**/*.ts') ? file.startsWith(path.slice(0, -'**/*.ts'.length)) : file === path;
    return isFile && Number(first) <= Number(line) && Number(line) <= Number(last);
  });
}

/** What no test found, apart from what is listed with a reason. */
export function survivorsOf<M extends Mutant>(left: readonly M[], reasons: Reasons): { harmless: M[]; survivors: M[] } {
  const isHarmless = (mutant: M): boolean =>
    Object.values(reasons[mutant.place ?? ''] ?? {})
      .flat()
      .some((listed) => isListed(mutant, listed));
  return { harmless: left.filter(isHarmless), survivors: left.filter((mutant) => !isHarmless(mutant)) };
}

function isListed({ original, replacement, line }: Mutant, [text, by, within = '']: Listed): boolean {
  return text === original && by === replacement && line.includes(within);
}

/** What is listed, and is none of these mutants. */
export function withoutMutant(reasons: Reasons, mutants: readonly Mutant[]): string[] {
  return Object.entries(reasons).flatMap(([place, byReason]) =>
    Object.values(byReason)
      .flat()
      .filter((listed) => !mutants.some((mutant) => mutant.place === place && isListed(mutant, listed)))
      .map((listed) => `${place}: ${JSON.stringify(listed)}`),
  );
}
