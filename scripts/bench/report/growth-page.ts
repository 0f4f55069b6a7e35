import type { Options } from '../options';
import type { GrowthResult } from '../results';
import type { Environment } from './environment';
import { introduction, spread, table } from './page';

/** The name of the picture of a curve, beside the page. */
export function pictureOf({ curve }: GrowthResult): string {
  return `growth-${curve.name}.svg`;
}

/** The page docs/growth.md: how cost grows, as pictures and tables. */
export function growthPage(environment: Environment, options: Options, results: readonly GrowthResult[]): string {
  return [
    '# How cost grows',
    'Written by `npm run bench -- --scenario 9 --page`; do not edit.',
    introduction(environment, options),
    'Ours beside the two peers in Node that are used most, and the floor: no library, but the least that the work costs on node-redis. The [method](benchmarks.md#method) is that of all benchmarks. Both scales of a picture are logarithmic. Cells show the median, with the minimum and maximum in parentheses.',
    ...results.flatMap(section),
  ]
    .join('\n\n')
    .concat('\n');
}

function section(result: GrowthResult): string[] {
  const { curve, metrics, series, faults } = result;
  return [
    `## ${curve.id}. ${curve.title}`,
    `![${curve.title}](${pictureOf(result)})`,
    ...(curve.explanation === undefined ? [] : [curve.explanation]),
    ...metrics.map(({ id, title, unit }) =>
      table(
        [`${title}, ${unit}`, ...curve.sizes.map((size) => `${size.toLocaleString('en')} ${curve.unit}`)],
        series.map((one) => [
          one.title,
          ...one.points.map((values) => (values[id] === undefined ? '–' : spread(values[id]))),
        ]),
      ),
    ),
    ...faults.map((fault) => `Not measured: ${fault}.`),
  ];
}
