/** Three significant digits, with thousands separators. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (Math.abs(value) >= 1_000) return Math.round(Number(value.toPrecision(3))).toLocaleString('en');
  if (value === 0 || Number.isInteger(value)) return String(value);
  return Math.abs(value) < 0.001 ? value.toExponential(0) : String(Number(value.toPrecision(3)));
}

export function ratio(value: number): string {
  return `${value >= 100 ? figure(value) : value.toFixed(2)} ×`;
}
