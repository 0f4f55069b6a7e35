// Captured before a test can install fake timers.
const { setTimeout: realSetTimeout } = globalThis;
const now = performance.now.bind(performance);

/** ms; for a wait that ends by a condition, also on a busy machine. */
export const WAIT_LIMIT = 5_000;

/** Resolves to the first truthy result of the condition; rejects after `within` ms. */
export async function until<T>(
  condition: () => T | PromiseLike<T>,
  { within = 10_000 }: { within?: number } = {},
): Promise<T> {
  const giveUpAt = now() + within;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (now() > giveUpAt) throw new Error(`Not within ${within} ms: ${condition}`);
    await new Promise((resolve) => realSetTimeout(resolve, 2));
  }
}
