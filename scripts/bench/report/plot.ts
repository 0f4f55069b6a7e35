import type { EChartsOption } from 'echarts';
import type { GrowthResult } from '../results';
import type { Metric } from '../scenarios/scenario';

const WIDTH = 960;
const HEIGHT = 760;
/** Fractions of the picture: where the four panels begin, and their size. */
const PANELS = { left: [0.08, 0.57], top: [0.14, 0.6], width: 0.39, height: 0.32 } as const;

/** One SVG for a curve: a panel for each of its four metrics, both scales logarithmic. */
export async function plot({ curve, metrics, series }: GrowthResult): Promise<string> {
  const echarts = await import('echarts');
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT });
  const panels = metrics.map((metric, i) => ({ metric, column: i % 2, row: Math.floor(i / 2) }));
  const option: EChartsOption = {
    animation: false,
    backgroundColor: '#fff',
    textStyle: { fontFamily: 'sans-serif' },
    legend: { top: 8, itemGap: 24, data: series.map(({ title }) => title) },
    title: panels.map(({ metric, column, row }) => ({
      text: titleOf(metric),
      textStyle: { fontSize: 13 },
      left: percent(PANELS.left[column]),
      top: percent((PANELS.top[row] ?? 0) - 0.055),
    })),
    grid: panels.map(({ column, row }) => ({
      left: percent(PANELS.left[column]),
      top: percent(PANELS.top[row]),
      width: percent(PANELS.width),
      height: percent(PANELS.height),
    })),
    // The sizes are powers of one number, so equal steps are a logarithmic scale.
    xAxis: panels.map((_, gridIndex) => ({
      gridIndex,
      type: 'category',
      data: curve.sizes.map((size) => size.toLocaleString('en')),
      name: curve.unit,
      nameLocation: 'middle',
      nameGap: 26,
    })),
    yAxis: panels.map((_, gridIndex) => ({
      gridIndex,
      type: 'log',
      min: ({ min }: { min: number }) => 10 ** Math.floor(Math.log10(min)),
      axisLabel: { formatter: (value: number) => String(Number(value.toPrecision(2)).toLocaleString('en')) },
    })),
    series: panels.flatMap(({ metric }, panel) =>
      series.map(({ title, kind, points }, i) => ({
        type: 'line' as const,
        name: title,
        xAxisIndex: panel,
        yAxisIndex: panel,
        data: points.map((values) => {
          const median = values[metric.id]?.median ?? 0;
          return median > 0 ? median : null; // a logarithmic scale has no zero
        }),
        color: COLOURS[i % COLOURS.length] as string,
        lineStyle: { type: kind === 'floor' ? ('dotted' as const) : kind === 'ours' ? 'solid' : 'dashed' },
      })),
    ),
  };
  chart.setOption(option);
  const svg = chart.renderToSVGString();
  chart.dispose();
  return `${svg}\n`;
}

/** In the order of the candidates: the floor, ours, the peers. */
const COLOURS = ['#555', '#1b9e3e', '#1f6fd0', '#8a3ffc', '#e07b00', '#d62839'];

function titleOf({ title, unit }: Metric): string {
  return unit === '' ? title : `${title}, ${unit}`;
}

function percent(fraction: number | undefined): string {
  return `${(fraction ?? 0) * 100}%`;
}
