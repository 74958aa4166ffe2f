import { type Rpc, rpcAt } from '#world/evm/rpc.ts'
import { solanaChainId } from './chains.ts'

/** Where the solver reaches a chain: a port of the world's own, and the URL that clients know. */
export type Endpoint = { port: number; url: string }
export type Endpoints = { evm: Record<string, Endpoint>; solana: Endpoint; controlUrl: string }

export type Connections = {
  rpc: (chainId: number) => Rpc
  publicUrl: (chainId: number) => string
  solanaPort: number
  close: () => void
}

export const openConnections = (endpoints: Endpoints): Connections => {
  const opened = new Map<number, Rpc>()
  const endpointOf = (chainId: number): Endpoint => {
    const found = chainId === solanaChainId ? endpoints.solana : endpoints.evm[String(chainId)]
    if (!found) throw new Error(`There is no chain ${chainId}.`)
    return found
  }
  return {
    rpc: (chainId) => {
      const known = opened.get(chainId) ?? rpcAt(endpointOf(chainId).port)
      opened.set(chainId, known)
      return known
    },
    publicUrl: (chainId) => endpointOf(chainId).url,
    solanaPort: endpoints.solana.port,
    close: () => {
      for (const rpc of opened.values()) rpc.close()
    },
  }
}
