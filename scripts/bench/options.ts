import { parseArgs } from 'node:util';
import { candidates } from './candidates';
import { LANGUAGES, type Language } from './programs';
import { scenarios } from './scenarios';
import { isNamed } from './scenarios/scenario';

export interface Options {
  readonly quick: boolean;
  readonly rounds: number;
  /** Names of scenarios to run, as `isNamed` reads them. Empty: all. */
  readonly scenarios: readonly string[];
  /** Candidates to run, with the floor of each scenario. Empty: all. */
  readonly only: readonly string[];
  /** Languages other than Node whose peers take part wherever they can. */
  readonly peers: readonly Language[];
  /** Takes the cost of the targets' loads apart, in place of the scenarios. */
  readonly profile: boolean;
  readonly json: boolean;
  readonly page: boolean;
}

export const usage = `npm run bench -- [options]
  --quick        one round, short windows, no variants: under two minutes
  --rounds N     number of rounds (5; 1 with --quick)
  --scenario N   only this scenario (4: 4a, 4b and 4t); may be repeated
  --only NAME    only this candidate and the floor; may be repeated
  --peers L,L    also peers in other languages: ${LANGUAGES.join(', ')}; what the machine cannot build is left out
  --profile      takes apart what each acquisition costs, by whose code it is, in place of the scenarios
  --json         prints the results as JSON, and progress on stderr
  --no-growth    all scenarios but 9, which takes the longest
  --page         writes docs/benchmarks.md and docs/growth.md; with --scenario 9 only the latter, with --no-growth only
                 the former; with --profile only its section
Scenarios:
${[...new Map(scenarios.map(({ id, title, point }) => [id, point?.curve.title ?? title]))]
  .map(([id, title]) => `  ${id.padEnd(3)} ${title}`)
  .join('\n')}
Candidates: ${candidates.map(({ id }) => id).join(', ')}`;

export class UsageError extends Error {}

/** `undefined` for --help. */
export function readOptions(args: readonly string[]): Options | undefined {
  const { values } = parse(args);
  if (values.help) return undefined;
  const quick = values.quick ?? false;
  const rounds = Number(values.rounds ?? (quick ? 1 : 5));
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new UsageError(`--rounds "${values.rounds}" is not a number of rounds`);
  const chosen = values.scenario ?? [];
  const noGrowth = values['no-growth'] ?? false;
  if (noGrowth && chosen.length > 0) throw new UsageError('--no-growth cannot be combined with --scenario');
  const names = noGrowth ? scenarios.filter(({ point }) => point === undefined).map(({ id }) => id) : chosen;
  for (const name of names) {
    if (!scenarios.some((scenario) => isNamed(scenario, name))) throw new UsageError(`There is no scenario "${name}"`);
  }
  const only = values.only ?? [];
  for (const name of only) {
    if (!candidates.some(({ id }) => id === name)) throw new UsageError(`There is no candidate "${name}"`);
  }
  const peers = (values.peers ?? []).flatMap((list) => list.split(',')).map(languageNamed);
  const page = values.page ?? false;
  const profile = values.profile ?? false;
  const isGrowthOnly = names.length > 0 && names.every((name) => /^9[a-z]?$/.test(name));
  if (page && !profile && ((chosen.length > 0 && !isGrowthOnly) || only.length > 0)) {
    throw new UsageError('--page cannot be combined with --only, or a --scenario but 9: a page must show all results');
  }
  if (profile && values.json) {
    throw new UsageError('--profile cannot be combined with --json');
  }
  return { quick, rounds, scenarios: names, only, peers, profile, json: values.json ?? false, page };
}

function languageNamed(name: string): Language {
  const found = LANGUAGES.find((language) => language === name);
  if (found === undefined) throw new UsageError(`There are no peers in "${name}", only in ${LANGUAGES.join(' and ')}`);
  return found;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        quick: { type: 'boolean' },
        rounds: { type: 'string' },
        'no-growth': { type: 'boolean' },
        scenario: { type: 'string', multiple: true },
        only: { type: 'string', multiple: true },
        peers: { type: 'string', multiple: true },
        profile: { type: 'boolean' },
        json: { type: 'boolean' },
        page: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
