/** `npm run spec`: exit code 0 when TLC finds what it should find; 1 when not; 2 for a wrong option. */

import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { runMain } from '../../support/run-main';
import { MODELS, type Model } from './models';
import { taskOf } from './modules';
import { runTlc, tlcJar } from './tlc';
import { type Replacement, VARIANTS, type Variant } from './variants';

const USAGE = `npm run spec -- [options]
  --small         small models and the variants that they refute: a part of all, for every change
  --large         also the large models, which take some minutes each
  --only TEXT     models and variants whose name contains it
  --output        print what TLC printed`;

function readOptions() {
  const { values } = parseArgs({
    options: {
      small: { type: 'boolean', default: false },
      large: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      output: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  return values;
}

type Options = ReturnType<typeof readOptions>;

function modelOf({ model, constants }: Variant): Model {
  const found = MODELS[model];
  if (found === undefined) throw new Error(`There is no model "${model}"`);
  return { ...found, constants: { ...found.constants, ...constants } };
}

interface Check {
  readonly name: string;
  readonly model: Model;
  readonly replacements?: readonly Replacement[];
  /** What TLC has to refute; `undefined`: nothing. */
  readonly refutes?: string;
}

function checks({ small, large, only }: Options): Check[] {
  const models = Object.entries(MODELS).map(([name, model]) => ({ name, model, size: model.size, isSlow: false }));
  const variants = VARIANTS.map((variant) => {
    const size = MODELS[variant.model]?.size ?? 'large';
    return { ...variant, model: modelOf(variant), size, isSlow: variant.isSlow === true };
  });
  return [...models, ...variants].filter(({ name, size, isSlow }) => {
    const isWanted = size === 'small' || (size === 'medium' && !small) || (size === 'large' && large);
    return isWanted && !(isSlow && small) && name.includes(only);
  });
}

/** Returns whether TLC found what it should find. */
async function run(
  { name, model, replacements, refutes }: Check,
  table: Table.Table,
  prints: boolean,
): Promise<boolean> {
  const { refuted, states, seconds, output } = await runTlc(taskOf(model, replacements));
  const isRight = refuted === refutes;
  if (prints || !isRight) console.log(output);
  if (!isRight)
    console.log(`"${name}": TLC should refute ${refutes ?? 'nothing'}, and refuted ${refuted ?? 'nothing'}`);
  const bounds = refutes === undefined ? model.bounds : 'wrong variant';
  table.push([name, model.module, bounds, states.toLocaleString('en-US'), seconds.toFixed(0), refuted ?? 'nothing']);
  return isRight;
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  tlcJar();
  const startedAt = Date.now();
  const table = new Table({
    head: ['name', 'module', 'bounds', 'states', 's', 'refuted'],
    style: { head: [], border: [] },
  });
  let wrong = 0;
  for (const check of checks(options)) if (!(await run(check, table, options.output))) wrong++;
  console.log(table.toString());
  const verdict = wrong === 0 ? 'All is as it should be' : `${wrong} not as it should be`;
  console.log(`${verdict}, after ${Math.round((Date.now() - startedAt) / 1_000)} s`);
  return wrong === 0 ? 0 : 1;
}

void runMain(main);
