/** Errors in the form of Stripe's API. */

type ErrorType = 'invalid_request_error' | 'idempotency_error' | 'api_error' | 'card_error'
type Details = { code?: string; param?: string; declineCode?: string }

export class StripeError extends Error {
  readonly status: number
  readonly type: ErrorType
  readonly details: Details
  constructor(status: number, type: ErrorType, message: string, details: Details = {}) {
    super(message)
    this.status = status
    this.type = type
    this.details = details
  }

  body(): { error: Record<string, string> } {
    const { code, param, declineCode } = this.details
    return {
      error: {
        type: this.type,
        message: this.message,
        ...(code !== undefined && { code, doc_url: `https://stripe.com/docs/error-codes/${code}` }),
        ...(param !== undefined && { param }),
        ...(declineCode !== undefined && { decline_code: declineCode }),
      },
    }
  }
}

export const invalid = (message: string, details: Details = {}): StripeError =>
  new StripeError(400, 'invalid_request_error', message, details)

export const missing = (what: string, id: string): StripeError =>
  new StripeError(404, 'invalid_request_error', `No such ${what}: '${id}'`, {
    code: 'resource_missing',
    param: 'id',
  })
