/** Writes tables of data as CSV (RFC 4180). */

const number = /^-?\d+(\.\d+)?$/
/** Beginnings by which a spreadsheet takes a text for a formula, unless the text is a plain number. */
const formula = /^[=+\-@\t\r]/

export function csvCell(value: string): string {
  const text = formula.test(value) && !number.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csvOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('')
