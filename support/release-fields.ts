import manifest from '../package.json';

/** Fields of package.json that only the owner can fill in: CONTRIBUTING.md says what they are for. */
export const OWNERS_FIELDS = ['repository', 'homepage', 'bugs', 'author'] as const;

/** Those that are not there yet. */
export function missingFields(fields: object): string[] {
  return OWNERS_FIELDS.filter((name) => !(name in fields));
}

if (require.main === module) {
  const missing = missingFields(manifest);
  if (missing.length > 0) {
    console.warn(
      `Warning: package.json has no ${missing.join(', ')}: see "Before the first release" in CONTRIBUTING.md.`,
    );
  }
}
