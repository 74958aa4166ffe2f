/** Redirects requests to the public venue to this one, for clients whose URL cannot be configured. */
export const servePublicUrl = (venueUrl: string): Disposable => {
  const original = globalThis.fetch
  const toLocal = (url: string): string =>
    url.replace(/^https:\/\/api\.hyperliquid(-testnet)?\.xyz/, venueUrl)
  globalThis.fetch = (input, init) =>
    input instanceof Request
      ? original(new Request(toLocal(input.url), input), init)
      : original(toLocal(String(input)), init)
  return {
    [Symbol.dispose]() {
      globalThis.fetch = original
    },
  }
}
