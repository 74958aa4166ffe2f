/** The port through which adapters call their upstreams; the app injects one implementation. */

export type NetRequest = {
  url: string
  method: string
  headers: Record<string, string>
  body?: string
  timeoutMs: number
  signal?: AbortSignal
  maxBytes: number
  localAddress?: string
  /** The headers of the reply that the caller reads, in lower case. */
  replyHeaders?: readonly string[]
}
export type NetReply = {
  status: number
  body: string
  retryAfterMs?: number
  /** Those of `replyHeaders` that the reply has; absent if none were asked for. */
  headers?: Record<string, string>
}

/**
 * Returns any HTTP reply. Without a reply it throws the Fault `unavailable` if the request was certainly not
 * sent, and `upstream_timeout` if it may have arrived.
 */
export type Net = { fetch(request: NetRequest): Promise<NetReply> }

export type NetStream = {
  status: number
  contentType: string
  retryAfterMs?: number
  /** The body as it arrives. Read it to its end, or give it up by the signal of the request. Throws as `Net` does. */
  chunks: AsyncIterable<Uint8Array>
}

/** Resolves with the headers of the reply; `timeoutMs` and `maxBytes` of the request count for the whole body. */
export type StreamingNet = { open(request: NetRequest): Promise<NetStream> }
