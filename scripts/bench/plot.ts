import type { EChartsOption } from 'echarts';
import type { Metric } from './figures';
import type { ScenarioResult } from './report';
import type { Row } from './runner';
import type { Curve } from './scenarios';

const SIZE = { width: 960, height: 760 };
/** Percentages of the picture: where the four panels begin. */
const PANELS = [
  { left: 8, top: 14 },
  { left: 57, top: 14 },
  { left: 8, top: 60 },
  { left: 57, top: 60 },
] as const;

/** In the order of the candidates: the floor, ours, the peers. */
const COLOURS = ['#555', '#1b9e3e', '#1f6fd0', '#8a3ffc', '#e07b00', '#d62839'];

/** One SVG for a curve: a panel for each of its four metrics, both scales logarithmic. */
export async function plot(curve: Curve, points: readonly ScenarioResult[]): Promise<string> {
  const echarts = await import('echarts');
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, ...SIZE });
  const [{ scenario, rows }] = points as [ScenarioResult];
  const medianOf = (point: ScenarioResult, { candidate }: Row, metric: Metric) =>
    point.rows.find((row) => row.candidate === candidate)?.values[metric]?.median || null; // there is no logarithm of zero
  const option: EChartsOption = {
    animation: false,
    backgroundColor: '#fff',
    textStyle: { fontFamily: 'sans-serif' },
    legend: { top: 8, itemGap: 24, data: rows.map(({ candidate }) => candidate.title) },
    title: scenario.metrics.map((metric, i) => ({
      text: metric,
      textStyle: { fontSize: 13 },
      left: `${PANELS[i]?.left}%`,
      top: `${(PANELS[i]?.top ?? 0) - 5.5}%`,
    })),
    grid: PANELS.map(({ left, top }) => ({ left: `${left}%`, top: `${top}%`, width: '39%', height: '32%' })),
    // The sizes are powers of one number, so equal steps are a logarithmic scale.
    xAxis: PANELS.map((_, gridIndex) => ({
      gridIndex,
      type: 'category',
      name: curve.unit,
      nameLocation: 'middle',
      nameGap: 26,
      data: curve.sizes.map((size) => size.toLocaleString('en')),
    })),
    yAxis: PANELS.map((_, gridIndex) => ({
      gridIndex,
      type: 'log',
      min: ({ min }: { min: number }) => 10 ** Math.floor(Math.log10(min)),
      axisLabel: { formatter: (value: number) => Number(value.toPrecision(2)).toLocaleString('en') },
    })),
    series: scenario.metrics.flatMap((metric, panel) =>
      rows.map((row, i) => ({
        type: 'line' as const,
        name: row.candidate.title,
        xAxisIndex: panel,
        yAxisIndex: panel,
        data: points.map((point) => medianOf(point, row, metric)),
        color: COLOURS[i % COLOURS.length] as string,
        lineStyle: { type: i === 0 ? 'dotted' : row.candidate.title.startsWith('ours') ? 'solid' : 'dashed' },
      })),
    ),
  };
  chart.setOption(option);
  const svg = chart.renderToSVGString();
  chart.dispose();
  return `${svg}\n`;
}
