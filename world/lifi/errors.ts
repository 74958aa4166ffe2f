/** LI.FI's error codes, as far as this world answers with them. */
export const codes = {
  noQuote: 1002,
  notFound: 1003,
  rateLimit: 1005,
  server: 1006,
  validation: 1011,
} as const

export class LifiError extends Error {
  readonly status: number
  readonly code: number
  constructor(status: number, code: number, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export const invalid = (message: string): never => {
  throw new LifiError(400, codes.validation, message)
}

export const noQuote = (): never => {
  throw new LifiError(404, codes.noQuote, 'No available quotes for the requested transfer')
}
