/** A request that the solver rejects, in Relay's form. */
export class QuoteError extends Error {
  readonly status: number
  readonly errorCode: string
  constructor(status: number, errorCode: string, message: string) {
    super(message)
    this.status = status
    this.errorCode = errorCode
  }
}

export const rejectQuote = (errorCode: string, message: string): never => {
  throw new QuoteError(400, errorCode, message)
}
