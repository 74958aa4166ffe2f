/** What a run of the command line has of its machine, so that a test can give another. */
export type Terminal = {
  env: Readonly<Record<string, string | undefined>>
  home: string
  out: (text: string) => void
  err: (text: string) => void
  /** Whether a person reads `err` while the command runs. */
  isInteractive: boolean
  /** Of the screen of that person. */
  columns?: number
  signal: AbortSignal
  openBrowser: (url: string) => void
}

/** A wrong command line. */
export class UsageError extends Error {}
