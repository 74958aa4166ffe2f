/** Checks that a node serves the configured chain, and is a development node in the local environment only. */

type Node = { chainId: string; clientVersion: string }
type Expected = { chainId: string; local: boolean }

/**
 * Returns why a node must not be used, or undefined. The local world (the simulated chains and venue of a
 * development gateway) uses the ids of real chains, so a signature for the local world would be valid on the real chain
 * too. The gateway must never mix local and real nodes.
 */
export function nodeMismatch({ chainId, clientVersion }: Node, expected: Expected): string | undefined {
  if (chainId !== expected.chainId)
    return `The node serves chain ${chainId} where chain ${expected.chainId} was configured`
  const isDevelopment = clientVersion.startsWith('anvil/')
  if (isDevelopment && !expected.local)
    return `Chain ${chainId} is served by a development node outside the local environment`
  if (!isDevelopment && expected.local)
    return `Chain ${chainId} is served by a real node, and the local world's keys are known to all`
  return undefined
}
