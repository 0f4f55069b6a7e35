import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache } from './prepare';

/** Languages of the peers that do not run in Node. Their worker processes are programs in `peers/`. */
export const LANGUAGES = ['java', 'go'] as const;
export type Language = (typeof LANGUAGES)[number];

/** The loads that these programs know. */
export const FOREIGN_LOADS: readonly string[] = ['cycles', 'callers'];

interface Program {
  readonly title: string;
  /** What has to be on the machine, each with arguments that make it print its version. */
  readonly tools: readonly (readonly [string, ...string[]])[];
  readonly build: readonly [string, ...string[]];
  /** Runs it; the candidate, the host and port of the server, and the ttl in ms are added. */
  readonly run: readonly [string, ...string[]];
  /** The file that locks the versions, and how one of them reads in it. */
  readonly versions: { readonly file: string; pattern(name: string): RegExp };
}

const folderOf = (language: Language) => join(__dirname, 'peers', language);
const java = join(cache, 'java');
const go = join(cache, 'go-peer');

export const programs: Readonly<Record<Language, Program>> = {
  java: {
    title: 'Java',
    tools: [
      ['java', '-version'],
      ['mvn', '-version'],
    ],
    build: ['mvn', '-q', '-B', 'process-classes'],
    run: ['java', '-Xmx512m', '-cp', [join(java, 'classes'), join(java, 'libraries', '*')].join(':'), 'Worker'],
    versions: {
      file: 'pom.xml',
      pattern: (name) => new RegExp(`<artifactId>${name}</artifactId>\\s*<version>(.+)</version>`),
    },
  },
  go: {
    title: 'Go',
    tools: [['go', 'version']],
    build: ['go', 'build', '-trimpath', '-o', go, '.'],
    run: [go],
    versions: { file: 'go.mod', pattern: (name) => new RegExp(`${name} v(\\S+)`) },
  },
};

/** ms; a first build downloads the libraries. */
const BUILD_TIMEOUT = 600_000;

/** Builds the program of a language. Returns why its peers are left out, if they are. */
export function buildProgram(language: Language): string | undefined {
  const { title, tools, build } = programs[language];
  const missing = tools.filter(([tool, ...args]) => spawnSync(tool, args, { stdio: 'ignore' }).status !== 0);
  if (missing.length > 0)
    return `the peers in ${title} (not on this machine: ${missing.map(([tool]) => tool).join(', ')})`;
  const [command, ...args] = build;
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: folderOf(language),
    encoding: 'utf8',
    timeout: BUILD_TIMEOUT,
  });
  if (status === 0) return undefined;
  const [reason = 'no output'] = `${stdout}\n${stderr}`.split('\n').filter((line) => line.trim() !== '');
  return `the peers in ${title}, because \`${command} ${args[0]}\` failed: ${reason}`;
}

/** Of a library that the program of a language uses. */
export function versionOfLibrary(language: Language, name: string): string {
  const { file, pattern } = programs[language].versions;
  return pattern(name).exec(readFileSync(join(folderOf(language), file), 'utf8'))?.[1] ?? 'unknown';
}
