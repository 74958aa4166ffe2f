/** A typical mistake of a person or a model, and the answer to it. Placeholders such as `{position}` stand for values of the run. */

export type Sent = {
  /** `POST /v1/earn/deposit` */
  send: string
  /** Sent as JSON. */
  body?: unknown
  /** Sent unchanged. */
  raw?: string
  /** Added to a valid token; null removes a header. */
  headers?: Record<string, string | null>
}

export type Expected = {
  status: number
  code: string
  /** The location of a 422: `body.amount_usdc`. */
  at?: string
  /** The sentence; `<...>` matches what differs from run to run. */
  says: string
}

export type Mistake = Sent & {
  mistake: string
  /** A request that is sent before it, and is answered with 200. */
  before?: Sent[]
  /** For the table, where the request itself is too long. */
  shown?: string
  answer: Expected
}

export type MistakeSection = { title: string; mistakes: readonly Mistake[] }
