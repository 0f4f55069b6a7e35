import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

export interface Point {
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The count, of a histogram. */
  readonly value: number;
}

/** The real SDK, with exporters that keep what they get. One for a file: context managers are global. */
export class Exported {
  readonly #spans = new InMemorySpanExporter();
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#spans)] });
  readonly #meters = new MeterProvider({
    readers: [new PeriodicExportingMetricReader({ exporter: this.#metrics, exportIntervalMillis: 1_000_000 })],
  });
  readonly tracer = this.#tracers.getTracer('test');
  readonly meter = this.#meters.getMeter('test');

  /** For spans that the application starts to find their parent. */
  static useContexts(): void {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  }

  async stop(): Promise<void> {
    await Promise.all([this.#tracers.shutdown(), this.#meters.shutdown()]);
  }

  /** What an application does around its work. */
  async under<T>(name: string, task: () => Promise<T>): Promise<T> {
    const span = this.tracer.startSpan(name);
    try {
      return await context.with(trace.setSpan(context.active(), span), task);
    } finally {
      span.end();
    }
  }

  /** Ended spans by name, in the order of their begin. */
  spans(name: string): ReadableSpan[] {
    const found = this.#spans.getFinishedSpans().filter((span) => span.name === name);
    return found.sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1]);
  }

  span(name: string): ReadableSpan {
    const found = this.spans(name);
    if (found.length !== 1) throw new Error(`Expected one span "${name}", there are ${found.length}`);
    return found[0] as ReadableSpan;
  }

  async #lastMetrics() {
    await this.#meters.forceFlush();
    const last = this.#metrics.getMetrics().at(-1);
    return last?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? [];
  }

  /** Of all metrics, by name. */
  async points(): Promise<Readonly<Record<string, Point[]>>> {
    const metrics = await this.#lastMetrics();
    const simple = (point: DataPoint<number | Histogram>): Point => ({
      attributes: point.attributes,
      value: typeof point.value === 'number' ? point.value : point.value.count,
    });
    return Object.fromEntries(
      metrics.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        (dataPoints as DataPoint<number | Histogram>[]).map(simple),
      ]),
    );
  }

  /** The unit of a histogram, and the longest that was recorded. */
  async histogram(name: string) {
    const found = (await this.#lastMetrics()).find(({ descriptor }) => descriptor.name === name);
    const longest = (found?.dataPoints as DataPoint<Histogram>[] | undefined)?.map(({ value }) => value.max ?? 0);
    return { unit: found?.descriptor.unit, longest: Math.max(...(longest ?? [])) };
  }
}

export function eventNames(span: ReadableSpan): string[] {
  return span.events.map(({ name }) => name);
}

export function parentOf(span: ReadableSpan): string | undefined {
  return span.parentSpanContext?.spanId;
}
