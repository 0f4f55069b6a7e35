import { LANGUAGES, librariesOf } from './languages';

/** Installs what the tests run with, before they start. */
export default function prepare(): void {
  for (const language of LANGUAGES) {
    if (librariesOf(language).length === 0) continue;
    const announced = performance.now();
    language.install();
    const seconds = (performance.now() - announced) / 1_000;
    if (seconds > 1) process.stderr.write(`${language.title}: installed in ${seconds.toFixed(0)} s\n`);
  }
}
