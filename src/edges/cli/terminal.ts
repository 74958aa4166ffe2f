/** What a run of the command line uses of its machine; a test can replace it. */
export type Terminal = {
  /** Absent where nothing can be read from the standard input. */
  input?: NodeJS.ReadableStream
  env: Readonly<Record<string, string | undefined>>
  home: string
  out: (text: string) => void
  err: (text: string) => void
  isInteractive: boolean
  /** The width of the screen that shows the notes of `err`. */
  columns?: number
  /** The width of the screen that shows `out`; absent if the output goes to a file or another program. */
  width?: number
  signal: AbortSignal
  openBrowser: (url: string) => void
  /**
   * Reads a line from a person, who edits it and finds the lines of `history`, the newest first, at the arrow keys; the
   * line is added to them. Undefined is the end of the input. Absent if nobody types.
   */
  readLine?: (prompt: string, history: string[]) => Promise<string | undefined>
  /** Until the returned function is called, Ctrl-C calls the listener and does not end the command. */
  onInterrupt?: (listener: () => void) => () => void
}

export class UsageError extends Error {}
