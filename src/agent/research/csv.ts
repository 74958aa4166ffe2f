/** Writes tables of data as CSV (RFC 4180). */

const number = /^-?\d+(\.\d+)?$/
/** A spreadsheet takes a text with such a beginning for a formula, unless it is a plain number. */
const formula = /^[=+\-@\t\r]/

export function csvCell(value: string): string {
  const text = formula.test(value) && !number.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csvOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('')
