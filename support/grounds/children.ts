import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

/** A process that ends with the cell that has started it, at the latest. */
export function track<T extends ChildProcess>(child: T): T {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Ends what a cell has left, as one does that took too long. */
export function endAll(): void {
  for (const child of children) child.kill('SIGKILL');
}

process.on('exit', endAll);
