/** Blocks the event loop for `ms`, as a task that computes does: no timer runs, and no answer is read. */
export function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
