/** What a run of the command line uses of its machine; a test can replace it. */
export type Terminal = {
  env: Readonly<Record<string, string | undefined>>
  home: string
  out: (text: string) => void
  err: (text: string) => void
  /** Whether a person reads `err` while the command runs. */
  isInteractive: boolean
  /** The width of that person's screen. */
  columns?: number
  signal: AbortSignal
  openBrowser: (url: string) => void
}

export class UsageError extends Error {}
