export type Cells = readonly string[];

/** Three significant digits, with thousands separators. */
export function figure(value = Number.NaN): string {
  return Number.isFinite(value) ? value.toLocaleString('en', { maximumSignificantDigits: 3 }) : '–';
}

export function markdownTable(head: Cells, rows: readonly Cells[], isNumber = (column: number) => column > 0): string {
  const line = (cells: Cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (isNumber(i) ? '---:' : '---'))), ...rows.map(line)].join('\n');
}
