import { SingleBar } from 'cli-progress';
import Table from 'cli-table3';
import { type ScenarioName, scenarios } from './scenarios';

/** The totals of one run. */
export interface Result {
  readonly name: ScenarioName;
  readonly pieces: number;
  readonly left: readonly number[]; // in Redis at the end, for each part of the stock
  readonly soldByWorker: readonly number[];
  readonly refusedTooEarly: number; // orders that were refused although a piece was left
  readonly ms: number; // until the last order was finished
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Orders without a piece. Negative: pieces that left the stock without an order. */
export function oversold({ soldByWorker, left, pieces }: Result): number {
  return sum(soldByWorker) + sum(left) - pieces;
}

/** Orders per second. */
export function rate({ soldByWorker, ms }: Result): number {
  return sum(soldByWorker) / (ms / 1000);
}

/** One sentence for each error in the totals; empty when every order got its piece. */
export function faults(result: Result): string[] {
  const excess = oversold(result);
  const below = result.left.filter((pieces) => pieces < 0).length;
  return [
    ...(excess > 0 ? [`${count(excess)} orders were sold for which there was no piece`] : []),
    ...(excess < 0 ? [`${count(-excess)} pieces left the stock without an order`] : []),
    ...(below > 0 ? [`${count(below)} part of the stock went below zero`] : []),
    ...(result.refusedTooEarly > 0
      ? [`${count(result.refusedTooEarly)} orders were refused while a piece was left`]
      : []),
  ];
}

export function verdict(result: Result): string {
  const wrong = faults(result);
  return `${scenarios[result.name].title}: ${wrong.length > 0 ? wrong.join('; ') : 'every order got its piece'}.`;
}

/** A progress bar of the stock; a line every two seconds where the output is not a terminal. */
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
    table.push([
      scenarios[result.name].title,
      count(result.pieces),
      count(sum(result.soldByWorker)),
      count(oversold(result)),
      count(sum(result.left)),
      `${(result.ms / 1000).toFixed(1)} s`,
      count(Math.round(rate(result))),
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
