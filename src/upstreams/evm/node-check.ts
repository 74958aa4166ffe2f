/** Whether a node is the one that the configuration means, and of the kind that the environment allows. */

type Node = { chainId: string; clientVersion: string }
type Expected = { chainId: string; local: boolean }

/** The local world's chain ids are real, so the two must never be connected: its signatures are valid on both. */
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
