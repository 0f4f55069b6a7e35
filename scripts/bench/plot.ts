import type { EChartsOption } from 'echarts';
import type { ScenarioResult } from './report';
import type { Curve } from './scenarios';

const WIDTH = 960;
const HEIGHT = 760;
/** Percentages of the picture: where the four panels begin, and their size. */
const PANELS = { left: [8, 57], top: [14, 60], width: '39%', height: '32%' } as const;

/** In the order of the candidates: the floor, ours, the peers. */
const COLOURS = ['#555', '#1b9e3e', '#1f6fd0', '#8a3ffc', '#e07b00', '#d62839'];

/** One SVG for a curve: a panel for each of its four metrics, both scales logarithmic. */
export async function plot(curve: Curve, points: readonly ScenarioResult[]): Promise<string> {
  const echarts = await import('echarts');
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT });
  const [{ scenario, rows }] = points as [ScenarioResult];
  const panels = scenario.metrics.map((metric, i) => {
    const [left = 0, top = 0] = [PANELS.left[i % 2], PANELS.top[Math.floor(i / 2)]];
    return { ...metric, left: `${left}%`, top: `${top}%`, above: `${top - 5.5}%` };
  });
  const option: EChartsOption = {
    animation: false,
    backgroundColor: '#fff',
    textStyle: { fontFamily: 'sans-serif' },
    legend: { top: 8, itemGap: 24, data: rows.map(({ candidate }) => candidate.title) },
    title: panels.map(({ title, unit, left, above }) => ({
      text: `${title}, ${unit}`,
      textStyle: { fontSize: 13 },
      left,
      top: above,
    })),
    grid: panels.map(({ left, top }) => ({ left, top, width: PANELS.width, height: PANELS.height })),
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
      axisLabel: { formatter: (value: number) => Number(value.toPrecision(2)).toLocaleString('en') },
    })),
    series: panels.flatMap(({ id }, panel) =>
      rows.map(({ candidate }, i) => ({
        type: 'line' as const,
        name: candidate.title,
        xAxisIndex: panel,
        yAxisIndex: panel,
        data: points.map((point) => {
          const median = point.rows.find((row) => row.candidate === candidate)?.values[id]?.median ?? 0;
          return median > 0 ? median : null; // a logarithmic scale has no zero
        }),
        color: COLOURS[i % COLOURS.length] as string,
        lineStyle: { type: i === 0 ? ('dotted' as const) : candidate.title.startsWith('ours') ? 'solid' : 'dashed' },
      })),
    ),
  };
  chart.setOption(option);
  const svg = chart.renderToSVGString();
  chart.dispose();
  return `${svg}\n`;
}
