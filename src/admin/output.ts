/** Rows for an operator: aligned columns, or one JSON object per line for programs. */
export type Cell = string | number | bigint | boolean | Date | null | undefined | object
export type Row = Readonly<Record<string, Cell>>

const toPlain = (cell: Cell): unknown => {
  if (cell instanceof Date) return cell.toISOString()
  return typeof cell === 'bigint' ? String(cell) : cell
}

const escapeUnits = (text: string): string =>
  Array.from(
    { length: text.length },
    (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('')

/** Escapes control and direction characters, which users may have stored to manipulate a terminal. */
const escapeControls = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escapeUnits)

export const jsonLine = (value: unknown): string =>
  escapeControls(JSON.stringify(value, (_key, cell: unknown) => toPlain(cell as Cell)))

export const jsonText = (value: unknown): string =>
  JSON.stringify(value, (_key, cell: unknown) => toPlain(cell as Cell), 2)
    .split('\n')
    .map(escapeControls)
    .join('\n')

function formatCell(cell: Cell): string {
  if (cell === null || cell === undefined) return '-'
  const value = toPlain(cell)
  return typeof value === 'object' ? jsonLine(value) : escapeControls(String(value))
}

export function tableLines(rows: readonly Row[]): string[] {
  const [first] = rows
  if (!first) return ['(none)']
  const names = Object.keys(first)
  const cells = [names, ...rows.map((row) => names.map((name) => formatCell(row[name])))]
  const widths = names.map((_, at) => Math.max(...cells.map((line) => line[at]!.length)))
  return cells.map((line) =>
    line
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join('  ')
      .trimEnd(),
  )
}

export const rowLines = (rows: readonly Row[], { json }: { json: boolean }): string[] =>
  json ? rows.map(jsonLine) : tableLines(rows)
