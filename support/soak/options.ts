import { parseArgs } from 'node:util';
import { type MutationName, mutations } from '../mutations';
import { SOAK_EXTRAS, SOAK_TYPES, type SoakExtra, type SoakType } from './settings';

export interface Options {
  readonly types: readonly SoakType[];
  readonly minutes: number;
  /** s of work under faults in each round. */
  readonly round: number;
  readonly seed: number;
  readonly extras: readonly SoakExtra[];
  readonly wrong: MutationName | undefined;
  readonly json: boolean;
  /** Where what the workers wrote down is kept. */
  readonly records: string | undefined;
}

export const usage = `npm run soak -- [options] [minutes]
  --type NAME     ${SOAK_TYPES.join(', ')}; may be repeated (all of them, at the same time)
  --minutes N     how long (5)
  --round N       seconds of work under faults, before each calm (20)
  --seed N        repeats the choice of calls and faults, as far as real processes allow
  --extra NAME    ${SOAK_EXTRAS.join(', ')}; may be repeated (none)
  --wrong NAME    gives the workers a wrong build, which has to fail: a mutation of support/mutations.ts;
                  the first violation of any type ends the soak
  --records DIR   keeps there what the workers wrote down, for npm run judge
  --json          prints the results as JSON on stdout, and all else on stderr`;

export class UsageError extends Error {}

/** `undefined`: help was asked for. */
export function readOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = parse(args);
  if (values.help) return undefined;
  if (positionals.length > 1) throw new UsageError(`One number of minutes is enough: ${positionals.join(' ')}`);
  const minutes = positive('Minutes', values.minutes ?? positionals[0] ?? '5');
  const round = positive('Seconds of a round', values.round ?? '20');
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
  if (!Number.isSafeInteger(seed)) throw new UsageError(`--seed ${values.seed} is not a whole number`);
  const wanted = values.type ?? SOAK_TYPES;
  const types = SOAK_TYPES.filter((type) => wanted.includes(type));
  const unknown = wanted.find((name) => !types.some((type) => type === name));
  if (unknown !== undefined) throw new UsageError(`There is no type "${unknown}"`);
  const extras = SOAK_EXTRAS.filter((extra) => values.extra?.includes(extra));
  const strange = values.extra?.find((name) => !extras.some((extra) => extra === name));
  if (strange !== undefined) throw new UsageError(`There is no extra "${strange}"`);
  const wrong = mutations.find(({ name }) => name === values.wrong)?.name;
  if (values.wrong !== undefined && wrong === undefined) throw new UsageError(`There is no build "${values.wrong}"`);
  const { json = false, records } = values;
  return { types, minutes, round, seed, extras, wrong, json, records };
}

function positive(what: string, text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < Number.POSITIVE_INFINITY))
    throw new UsageError(`${what}: ${text} is not a positive number`);
  return value;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        type: { type: 'string', multiple: true },
        minutes: { type: 'string' },
        round: { type: 'string' },
        seed: { type: 'string' },
        extra: { type: 'string', multiple: true },
        wrong: { type: 'string' },
        json: { type: 'boolean' },
        records: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
