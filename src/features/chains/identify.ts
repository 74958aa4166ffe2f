import type { Evm } from '#upstreams/evm/evm.ts'

type Asked = { row: Pick<Evm['row'], 'id' | 'displayName'>; identify: Evm['identify'] }

const developmentNode = /^(anvil|hardhat|ganache)/i

/**
 * The local world has the ids of the real chains, so a signature made for it would count there too. Hence no
 * development node outside the local environment, no public node inside it, and no node of another chain ever.
 * A chain that does not answer is no problem: it is down, and says so itself.
 */
export async function wrongNodes(chains: readonly Asked[], environment: string): Promise<string[]> {
  const found = await Promise.allSettled(chains.map(({ identify }) => identify()))
  return found.flatMap((answer, index) => {
    const { row } = chains[index]!
    if (answer.status === 'rejected') return []
    const { chainId, clientVersion } = answer.value
    if (chainId !== row.id) return [`the node of ${row.displayName} serves chain ${chainId}, not ${row.id}`]
    const development = developmentNode.test(clientVersion)
    if (development && environment !== 'local')
      return [
        `the node of ${row.displayName} is a development node (${clientVersion}); its money is not real`,
      ]
    if (!development && environment === 'local')
      return [
        `the node of ${row.displayName} is a public one (${clientVersion}); set ENVIRONMENT to staging or production`,
      ]
    return []
  })
}
