/** The port through which adapters call their upstreams; the app injects one implementation. */

export type NetRequest = {
  url: string
  method: string
  headers: Record<string, string>
  body?: string
  timeoutMs: number
  signal?: AbortSignal
  maxBytes: number
  /** The source address to send from, where the machine has several. */
  localAddress?: string
}
export type NetReply = {
  status: number
  body: string
  /** The delay that an error reply requests. */
  retryAfterMs?: number
}

/**
 * Returns any HTTP reply. Without a reply it throws the Fault `unavailable` where the request was certainly not sent,
 * and `upstream_timeout` where it may have arrived.
 */
export type Net = { fetch(request: NetRequest): Promise<NetReply> }

/** An HTTP reply whose body is read while it arrives. */
export type NetStream = {
  status: number
  contentType: string
  retryAfterMs?: number
  /** To be read to its end, or given up by the signal of the request. Throws as `Net` does. */
  chunks: AsyncIterable<Uint8Array>
}

/** Returns once the headers of the reply are there; `timeoutMs` and `maxBytes` of the request count for the whole body. */
export type StreamingNet = { open(request: NetRequest): Promise<NetStream> }
