import { EXIT, ExitError } from './exit-codes';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** ms of `500ms`, `30s`, `5m`, `1.5h`. */
export function durationOf(option: string, text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Number(number) * (UNITS[unit] ?? Number.NaN);
  if (number === '' || !Number.isFinite(ms)) {
    throw new ExitError(EXIT.usage, `--${option} takes a duration such as 500ms, 30s or 5m, not "${text}"`);
  }
  return ms;
}

/** For people: `850 ms`, `12 s`, `3 min 20 s`. */
export function shown(ms: number): string {
  if (ms === Number.POSITIVE_INFINITY) return 'no expiry';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
