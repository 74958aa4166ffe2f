const levels: Readonly<Record<number, string>> = { 20: 'DEBUG', 30: 'INFO', 40: 'WARN', 50: 'ERROR' }
/**
 * The characters to escape: a terminal executes control characters, and format characters change the order of the text.
 */
const control = /[\p{Cc}\p{Cf}\u2028\u2029]/gu
const plainValue = /^[^\s"={}]+$/

const printable = (text: string): string =>
  text.replace(control, (character) => {
    const hex = character.codePointAt(0)!.toString(16)
    return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`
  })

const valueText = (value: unknown): string =>
  printable(typeof value === 'string' && plainValue.test(value) ? value : JSON.stringify(value))

/** Returns the stack of an error and of its causes, one indented line each. */
function stackLines(error: unknown): string[] {
  if (typeof error !== 'object' || error === null) return []
  const { stack, cause } = error as { stack?: unknown; cause?: unknown }
  const own = typeof stack === 'string' ? stack.split('\n').map((line) => `    ${printable(line)}`) : []
  const causes = stackLines(cause)
  return causes.length > 0 ? [...own, '  caused by', ...causes] : own
}

/** Formats a JSON log line for a terminal: time, level, sentence, facts, and the stack of an error below. */
export function formatLogLine(line: string): string {
  const { time, level, msg, error, ...facts } = JSON.parse(line) as Record<string, unknown>
  const stack = stackLines(error)
  const shown = stack.length === 0 && error !== undefined ? { ...facts, error } : facts
  const head = [
    String(time).slice(11, 23),
    (levels[Number(level)] ?? String(level)).padEnd(5),
    printable(String(msg)),
    ...Object.entries(shown).map(([name, value]) => `${name}=${valueText(value)}`),
  ].join(' ')
  return [head, ...stack].map((text) => `${text}\n`).join('')
}
