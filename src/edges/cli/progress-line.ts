import { printable } from './cell-text.ts'
import { cut } from './table-text.ts'
import type { Terminal } from './terminal.ts'

const columnsMin = 20
const columnsUnknown = 100
const eraseLine = '\r\u001b[K'

/** A note beside the output: on a terminal it is dimmed, and no longer than a line. */
export function noteText(text: string, { isInteractive, columns = 0, env }: Terminal): string {
  if (!isInteractive) return printable(text)
  // Some terminals have no size, and report 0.
  const line = cut(printable(text), (columns < columnsMin ? columnsUnknown : columns) - 1)
  return env.NO_COLOR ? line : `\u001b[2m${line}\u001b[22m`
}

export type ProgressLine = { show(text: string): void; end(): void }

/** Shows what is going on in one line of a terminal, which the next text replaces. */
export function progressLine(terminal: Terminal): ProgressLine {
  let isShown = false
  return {
    show(text) {
      terminal.err(`${isShown ? eraseLine : ''}${noteText(text, terminal)}`)
      isShown = true
    },
    end() {
      if (isShown) terminal.err(eraseLine)
      isShown = false
    },
  }
}
