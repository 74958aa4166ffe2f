/** What a run of the command line uses of its machine; a test can replace it. */
export type Terminal = {
  /** Absent where nothing can be read from the standard input. */
  input?: NodeJS.ReadableStream
  env: Readonly<Record<string, string | undefined>>
  home: string
  out: (text: string) => void
  err: (text: string) => void
  isInteractive: boolean
  columns?: number
  signal: AbortSignal
  openBrowser: (url: string) => void
}

export class UsageError extends Error {}
