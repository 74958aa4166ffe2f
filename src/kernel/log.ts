/** The part of pino that the code relies on. Secrets are redacted where the logger is made. */
export type Log = {
  debug(facts: object, sentence: string): void
  info(facts: object, sentence: string): void
  warn(facts: object, sentence: string): void
  error(facts: object, sentence: string): void
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
