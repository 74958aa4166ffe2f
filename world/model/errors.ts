/** What the local model refuses, in the words of both interfaces. */

type Details = { param?: string; code?: string; retryAfterSeconds?: number }

/** An answer that is an error; each interface writes it in its own form. */
export class ModelError extends Error {
  readonly status: number
  readonly details: Details
  constructor(status: number, message: string, details: Details = {}) {
    super(message)
    this.status = status
    this.details = details
  }
}

const openAiTypes: Record<number, string> = {
  429: 'requests',
  500: 'server_error',
  502: 'server_error',
  503: 'server_error',
  529: 'server_error',
}
const openAiCodes: Record<number, string> = { 401: 'invalid_api_key', 429: 'rate_limit_exceeded' }

export const openAiErrorBody = ({ status, message, details: { param, code } }: ModelError) => ({
  error: {
    message,
    type: openAiTypes[status] ?? 'invalid_request_error',
    param: param ?? null,
    code: code ?? openAiCodes[status] ?? null,
  },
})

const anthropicTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

export const anthropicErrorBody = ({ status, message }: ModelError, requestId: string) => ({
  type: 'error',
  error: { type: anthropicTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'), message },
  request_id: requestId,
})
