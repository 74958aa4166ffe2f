/** The port through which adapters reach their upstreams; one implementation, handed in by the app. */

export type NetRequest = {
  url: string
  method: string
  headers: Record<string, string>
  body?: string
  timeoutMs: number
  signal?: AbortSignal
  maxBytes: number
  /** The own address to send from, where the machine has several. */
  localAddress?: string
}
export type NetReply = {
  status: number
  body: string
  /** As the far side asked for, with a refusal. */
  retryAfterMs?: number
}

/**
 * Answers with whatever the far side said. When it said nothing: Fault `unavailable` where the request certainly never
 * left, `upstream_timeout` where it may have arrived.
 */
export type Net = { fetch(request: NetRequest): Promise<NetReply> }
