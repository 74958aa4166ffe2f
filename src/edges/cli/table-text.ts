/** Lays texts out in columns, so that no line is longer than the screen. */

export type Column = {
  header: string
  cells: readonly string[]
  /** Numbers stand at the right of their column. */
  isNumber: boolean
  /** Whether a part of a text is of use: an id, which is only good whole, is not cut. */
  mayBeCut: boolean
  /** Whether the cells are the ids of their rows. */
  isIdentity?: boolean
}

const gap = '  '
const cutMin = 14

/** How many places of a screen a text takes: some letters take two, and marks above letters none. */
export function widthOf(text: string): number {
  let width = 0
  for (const letter of text) width += /\p{Mn}/u.test(letter) ? 0 : isWide(letter) ? 2 : 1
  return width
}
const isWide = (letter: string): boolean => {
  const code = letter.codePointAt(0) ?? 0
  return (
    code >= 0x1100 &&
    (code <= 0x115f ||
      (code >= 0x2e80 && code <= 0xa4cf) ||
      (code >= 0xac00 && code <= 0xd7a3) ||
      (code >= 0xf900 && code <= 0xfaff) ||
      (code >= 0xfe30 && code <= 0xfe6f) ||
      (code >= 0xff00 && code <= 0xff60) ||
      (code >= 0xffe0 && code <= 0xffe6) ||
      (code >= 0x1f300 && code <= 0x1faff) ||
      code >= 0x20000)
  )
}

export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let shown = ''
  for (const letter of text) {
    if (widthOf(shown) + widthOf(letter) > width - 1) break
    shown += letter
  }
  return width < 1 ? '' : `${shown}…`
}

const padded = (text: string, width: number, { isNumber }: Column): string => {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)))
  return isNumber ? space + text : text + space
}

/** Breaks a text between words; a word that is longer than a line is broken where the line ends. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (let word of text.split(' ')) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) <= width) {
      line += ` ${word}`
      continue
    }
    if (line !== '') lines.push(line)
    while (widthOf(word) > width) {
      const part = cut(word, width + 1).slice(0, -1)
      if (part === '') break
      lines.push(part)
      word = word.slice(part.length)
    }
    line = word
  }
  return [...lines, line]
}

const widest = (texts: readonly string[]): number => Math.max(0, ...texts.map(widthOf))
const headerWidth = (header: string): number => widest(header.split(' '))
const totalOf = (widths: readonly number[]): number =>
  widths.reduce((sum, width) => sum + width, 0) + gap.length * Math.max(0, widths.length - 1)

export type Table = { lines: string[]; leftOut: string[] }

/**
 * Prints the columns within a width. First the headers are broken between their words; then the identity of a row,
 * which is not cut, stands on a line of its own below the row; then long texts are cut, and at last columns are left
 * out, from the right.
 */
export function tableText(columns: readonly Column[], width = Number.POSITIVE_INFINITY): Table {
  const uncut = fitted(columns, width, Number.POSITIVE_INFINITY)
  if (uncut) return { lines: linesOf(columns, uncut), leftOut: [] }
  const [first, ...others] = columns
  const isBelow = first?.isIdentity === true && others.length > 1
  const beside = isBelow ? others : columns
  for (let count = beside.length; ; count--) {
    const shown = beside.slice(0, count)
    const widths = fitted(shown, width, count > 2 ? cutMin : 1) ?? (count > 1 ? undefined : [width])
    if (!widths) continue
    const lines = linesOf(shown, widths)
    const height = lines.length - (columns[0]?.cells.length ?? 0)
    return {
      lines: isBelow ? withIdentities(lines, { height, cells: first.cells, width }) : lines,
      leftOut: beside.slice(count).map(({ header }) => header),
    }
  }
}

const withIdentities = (
  lines: readonly string[],
  { height, cells, width }: { height: number; cells: readonly string[]; width: number },
): string[] =>
  lines.flatMap((line, at) =>
    at < height ? [line] : [line, ...wrapped(cells[at - height] ?? '', width - 2).map((id) => `  ${id}`)],
  )

/** Returns the widths of the columns; undefined if they do not fit although texts are cut down to `min` places. */
function fitted(columns: readonly Column[], width: number, min: number): number[] | undefined {
  const natural = columns.map(({ header, cells }) => Math.max(widest(cells), widthOf(header)))
  if (totalOf(natural) <= width) return natural
  const widths = columns.map(({ header, cells }) => Math.max(widest(cells), headerWidth(header)))
  for (let over = totalOf(widths) - width; over > 0; over--) {
    const [longest] = columns
      .map(({ mayBeCut }, at) => ({ at, width: mayBeCut ? widths[at]! : 0 }))
      .sort((a, b) => b.width - a.width)
    if (!longest || longest.width <= Math.max(min, headerWidth(columns[longest.at]!.header))) return undefined
    widths[longest.at]!--
  }
  return widths
}

function linesOf(columns: readonly Column[], widths: readonly number[]): string[] {
  const row = (texts: readonly string[]): string =>
    texts
      .map((text, at) => padded(cut(text, widths[at]!), widths[at]!, columns[at]!))
      .join(gap)
      .trimEnd()
  const headers = columns.map(({ header }, at) => wrapped(header, widths[at]!))
  const height = Math.max(0, ...headers.map(({ length }) => length))
  // The last line of each header stands above its cells.
  const head = Array.from({ length: height }, (_, line) =>
    row(headers.map((each) => each[line - height + each.length] ?? '')),
  )
  const rows = columns[0]?.cells ?? []
  return [...head, ...rows.map((_, at) => row(columns.map(({ cells }) => cells[at] ?? '')))]
}
