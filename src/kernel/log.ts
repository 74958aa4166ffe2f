/** The part of pino's interface that the code uses. The logger redacts secrets where it is created. */
export type Log = {
  debug(facts: object, sentence: string): void
  info(facts: object, sentence: string): void
  warn(facts: object, sentence: string): void
  error(facts: object, sentence: string): void
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
