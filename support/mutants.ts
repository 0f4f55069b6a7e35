import { readFileSync } from 'node:fs';

/** One small mistake that Stryker put into the code. */
export interface Mutant {
  /** `file:line:column-line:column`, from line 1 and column 0, as Stryker takes it. */
  readonly span: string;
  readonly file: string;
  readonly original: string;
  readonly replacement: string;
  /** The line that it is in, or begins in. */
  readonly line: string;
  /** A test failed, did not end, or the file did not even load. */
  readonly isFound: boolean;
  /** A test did not end in time. On a busy machine that may have another reason. */
  readonly isTimedOut: boolean;
}

/**
 * By file: why mutants change nothing that anybody can observe, and the mutants of each reason. `within`: a part of the
 * line, where the same text stands in others too. Without line numbers, so that it outlives other changes.
 */
export type Reasons = Record<
  string,
  Record<string, readonly (readonly [original: string, replacement: string, within?: string])[]>
>;

interface Position {
  readonly line: number;
  readonly column: number;
}

/** The parts of Stryker's report that are used here. */
interface Report {
  readonly files: Record<
    string,
    {
      readonly source: string;
      readonly mutants: readonly {
        readonly status: string;
        readonly replacement?: string;
        readonly location: { readonly start: Position; readonly end: Position };
      }[];
    }
  >;
}

/** Ignored: constants of a module, of which Stryker can't choose a mutant later. */
const NOT_JUDGED = new Set(['Ignored', 'Pending', 'CompileError']);
const LEFT_OVER = new Set(['Survived', 'NoCoverage']);

export function readReport(path: string): Mutant[] {
  const { files }: Report = JSON.parse(readFileSync(path, 'utf8'));
  return Object.entries(files).flatMap(([file, { source, mutants }]) =>
    mutants
      .filter(({ status }) => !NOT_JUDGED.has(status))
      .map(({ status, replacement = '', location: { start, end } }) => {
        // The report counts columns from 1.
        const span = `${file}:${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`;
        const original = textBetween(source, start, end);
        const line = source.split('\n')[start.line - 1] as string;
        const isTimedOut = status === 'Timeout';
        return { span, file, original, replacement, line, isFound: !LEFT_OVER.has(status), isTimedOut };
      }),
  );
}

function textBetween(source: string, start: Position, end: Position): string {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  lines[lines.length - 1] = (lines.at(-1) as string).slice(0, end.column - 1);
  lines[0] = (lines[0] as string).slice(start.column - 1);
  return lines.join('\n');
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
export function survivorsOf(left: readonly Mutant[], reasons: Reasons): { harmless: Mutant[]; survivors: Mutant[] } {
  const isHarmless = ({ file, original, replacement, line }: Mutant): boolean =>
    Object.values(reasons[file] ?? {})
      .flat()
      .some(([text, by, within = '']) => text === original && by === replacement && line.includes(within));
  return { harmless: left.filter(isHarmless), survivors: left.filter((mutant) => !isHarmless(mutant)) };
}
