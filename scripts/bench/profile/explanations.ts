/** What the figures of a part mean, by the title of its subject. */
export const EXPLANATIONS: Readonly<Record<string, string>> = {};
