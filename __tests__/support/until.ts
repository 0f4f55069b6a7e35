// Taken before a test can replace them by fake timers.
const { setTimeout: realSetTimeout } = globalThis;
const now = performance.now.bind(performance);

/** Waits until the condition answers with something true, and answers with it; rejects when `within` ms are over. */
export async function until<T>(
  condition: () => T | PromiseLike<T>,
  { within = 2_000 }: { within?: number } = {},
): Promise<T> {
  const giveUpAt = now() + within;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (now() > giveUpAt) throw new Error(`Not within ${within} ms: ${condition}`);
    await new Promise((resolve) => realSetTimeout(resolve, 2));
  }
}
