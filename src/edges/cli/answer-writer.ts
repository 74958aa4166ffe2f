import { tableText, widthOf, wrapped } from './table-text.ts'

export type AnswerWriter = {
  write(text: string): void
  /** Ends the answer: what is held back is printed, and its last line is ended. Returns whether a line was open. */
  end(): boolean
}

const row = /^\s*\|.*\|\s*$/
const ruler = /^\s*\|?[\s:|-]+\|?\s*$/
const eraseBack = (columns: number): string => (columns > 0 ? `\u001b[${columns}D\u001b[K` : '')

/**
 * Prints an answer as it arrives, broken between its words at the width of the screen. A table is held back until it
 * has ended, and then laid out to fit. Without a width the text stays as it is.
 */
export function createAnswerWriter(out: (text: string) => void, width: number): AnswerWriter {
  /** The line that is on the screen so far: how wide it is, and the word at its end. */
  let [column, word] = [0, '']
  let isContinued = false
  /** A line that may belong to a table, and the lines of the table before it. */
  let [held, rows]: [string, string[]] = ['', []]
  let isHolding = false

  const breakLine = (): void => {
    out('\n')
    column = 0
    word = ''
    isContinued = false
  }
  const continueBelow = (moved: string): void => {
    out(eraseBack(widthOf(moved)))
    breakLine()
    out(moved)
    column = widthOf(moved)
    word = moved
    isContinued = true
  }
  /** Prints a word, or the next part of the word that ends the line. */
  const putWord = (part: string): void => {
    if (part === '') return
    if (column + widthOf(part) > width && column > 0) continueBelow(widthOf(word) < column ? word : '')
    for (const letter of part) {
      if (column + widthOf(letter) > width) continueBelow('')
      out(letter)
      column += widthOf(letter)
      word += letter
    }
  }
  const putSpace = (): void => {
    // The space between two words is not printed where the line is broken there.
    if (column === 0 && isContinued) return
    if (column + 1 > width) {
      continueBelow('')
      return
    }
    out(' ')
    column++
    word = ''
  }
  const putText = (text: string): void => {
    for (const part of text.split(/( )/))
      if (part === ' ') putSpace()
      else putWord(part)
  }
  const flushTable = (): void => {
    for (const line of rows.length > 1
      ? tableLines(rows, width)
      : rows.flatMap((each) => wrapped(each, width))) {
      out(line)
      breakLine()
    }
    rows = []
  }
  const endHeld = (): boolean => {
    if (!isHolding) return false
    isHolding = false
    if (row.test(held)) {
      rows.push(held)
      held = ''
      return true
    }
    flushTable()
    putText(held)
    held = ''
    return false
  }
  /** Writes a text without line breaks. */
  const writePart = (part: string): void => {
    if (part === '') return
    if (!isHolding && column === 0 && !isContinued && part.startsWith('|')) isHolding = true
    if (isHolding) {
      held += part
      return
    }
    flushTable()
    putText(part)
  }
  const endLine = (): void => {
    if (isHolding) {
      if (!endHeld()) breakLine()
      return
    }
    flushTable()
    breakLine()
  }
  return {
    write(text) {
      if (width === Number.POSITIVE_INFINITY) {
        out(text)
        if (text !== '') column = text.endsWith('\n') ? 0 : 1
        return
      }
      for (const [at, part] of text.split('\n').entries()) {
        if (at > 0) endLine()
        writePart(part)
      }
    },
    end() {
      const isTableRow = endHeld()
      flushTable()
      const wasOpen = column > 0
      if (wasOpen) breakLine()
      return wasOpen || isTableRow
    },
  }
}

/** Lays out a table of Markdown. */
function tableLines(rows: readonly string[], width: number): string[] {
  const cells = rows
    .filter((line) => !ruler.test(line))
    .map((line) =>
      line
        .trim()
        .replace(/^\||\|$/g, '')
        .split('|')
        .map((cell) => cell.trim().replace(/\*\*/g, '')),
    )
  const [head = [], ...body] = cells
  const columns = head.map((header, at) => {
    const own = body.map((line) => line[at] ?? '')
    const isNumber = own.length > 0 && own.every((cell) => /^[-+$\u2212<]?\$?[\d,.]+ ?[%\w]*$/.test(cell))
    return { header, cells: own, isNumber, mayBeCut: true }
  })
  return tableText(columns, width).lines
}
