import { type ChainId, worldChains } from './evm/chains.ts'
import type { WorldUrls } from './world.ts'

export const urlsOf = (ports: Record<string, number>, controlPort: number): WorldUrls => {
  const url = (port: number | undefined) => `http://127.0.0.1:${port}`
  const evm = Object.fromEntries(worldChains.map(({ id }) => [id, url(ports[`evm:${id}`])]))
  const control = url(controlPort)
  return {
    evm: evm as Record<ChainId, string>,
    solana: url(ports.solana),
    hyperliquid: url(ports.hyperliquid),
    polymarket: predictionUrls(ports.polymarket),
    solver: url(ports.solver),
    lifi: url(ports.lifi),
    honeypot: url(ports.honeypot),
    rugcheck: url(ports.rugcheck),
    prices: url(ports.prices),
    model: `${url(ports.model)}/v1`,
    images: url(ports.images),
    stripe: url(ports.stripe),
    faucet: `${control}/faucet`,
    control,
  }
}

/** One port for all services of the venue: each has a path of its own before those of upstream. */
const predictionUrls = (port: number | undefined): WorldUrls['polymarket'] => {
  const base = `http://127.0.0.1:${port}`
  return {
    clob: `${base}/clob`,
    gamma: `${base}/gamma`,
    data: `${base}/data`,
    relayer: `${base}/relayer`,
    bridge: `${base}/bridge`,
    geoblock: `${base}/geoblock`,
    socket: `ws://127.0.0.1:${port}/ws`,
  }
}
