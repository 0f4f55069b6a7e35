import { readFileSync } from 'node:fs';
import { arch, cpus, loadavg, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import { candidates } from '../candidates';
import { type Language, versionOfLibrary } from '../programs';

/** What the figures depend on. It contains nothing that identifies the machine. */
export interface Environment {
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  /** GiB */
  readonly memory: number;
  readonly system: string;
  /** Load average of a minute, when the run began. */
  readonly load: number;
  readonly node: string;
  readonly redis: string;
  /** Of this package and of all compared ones. */
  readonly versions: Readonly<Record<string, string>>;
}

/** `languages`: of the peers that take part. */
export function readEnvironment(redis: string, languages: ReadonlySet<Language>): Environment {
  const inNode = candidates.filter(({ language }) => language === undefined);
  const packages = [...new Set(inNode.flatMap((candidate) => candidate.packages))].sort();
  const libraries = candidates.flatMap(({ language, packages: names }) =>
    language !== undefined && languages.has(language)
      ? names.map((name): [string, string] => [name, versionOfLibrary(language, name)])
      : [],
  );
  return {
    date: new Date().toISOString().slice(0, 10),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memory: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${arch()}`,
    load: Number((loadavg()[0] ?? 0).toFixed(1)),
    node: process.version,
    redis,
    versions: {
      'redis-lock-registry': version(join(__dirname, '..', '..', '..', 'package.json')),
      ...Object.fromEntries(
        packages.map((name) => [name, version(join(__dirname, '..', 'node_modules', name, 'package.json'))]),
      ),
      ...Object.fromEntries(libraries),
    },
  };
}

function version(file: string): string {
  try {
    return String((JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version).replace(/^v/, '');
  } catch {
    return 'not installed';
  }
}
