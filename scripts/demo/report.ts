import { SingleBar } from 'cli-progress';
import Table from 'cli-table3';
import { type ScenarioName, scenarios } from './scenarios';

/** The books of one run. */
export interface Result {
  readonly name: ScenarioName;
  readonly pieces: number;
  readonly left: number; // what Redis says at the end
  readonly soldByWorker: readonly number[];
  readonly ms: number;
}

export function sold({ soldByWorker }: Result): number {
  return soldByWorker.reduce((sum, orders) => sum + orders, 0);
}

/** Orders for which there was no piece. Negative: pieces that went without an order. */
export function oversold(result: Result): number {
  return sold(result) + result.left - result.pieces;
}

/** How far the stock is sold, as a bar; as a line every two seconds where the output is no terminal. */
export class StockBar {
  readonly #bar: SingleBar;
  readonly #pieces: number;

  constructor(title: string, pieces: number) {
    const columns = 'stock {left} | orders sold {sold}';
    this.#pieces = pieces;
    this.#bar = new SingleBar({
      format: `${title.padEnd(12)} ${process.stdout.isTTY ? '{bar} ' : ''}${columns}`,
      stream: process.stdout,
      noTTYOutput: true,
      clearOnComplete: !process.stdout.isTTY, // no empty line after the plain ones
      barsize: 30,
      barCompleteChar: '█',
      barIncompleteChar: '░',
    });
    this.#bar.start(pieces, 0, payload(pieces, 0));
  }

  show(left: number, orders: number): void {
    this.#bar.update(this.#pieces - left, payload(left, orders));
  }

  stop(): void {
    this.#bar.stop();
  }
}

export function resultTable(results: readonly Result[]): string {
  const table = new Table({
    head: [
      '',
      'pieces\nin stock',
      'orders\nsold',
      'oversold\nby',
      'left in\nstock',
      'time',
      'orders/s',
      'sold per worker',
    ],
    colAligns: ['left', 'right', 'right', 'right', 'right', 'right', 'right', 'left'],
    style: { head: [], border: [] },
  });
  for (const result of results) {
    const seconds = result.ms / 1000;
    table.push([
      scenarios[result.name].title,
      count(result.pieces),
      count(sold(result)),
      count(oversold(result)),
      count(result.left),
      `${seconds.toFixed(1)} s`,
      count(Math.round(sold(result) / seconds)),
      result.soldByWorker.map(count).join(' + '),
    ]);
  }
  return table.toString();
}

export function count(value: number): string {
  return value.toLocaleString('en');
}

function payload(left: number, orders: number): Record<string, string> {
  return { left: count(left).padStart(5), sold: count(orders) };
}
