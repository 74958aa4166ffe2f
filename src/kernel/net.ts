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
