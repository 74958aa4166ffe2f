import type { CallFacts } from './call-tool.ts'
import { callTool } from './call-tool.ts'
import type { Toolbox } from './tools.ts'

/** Reads without arguments that a client may attach to a conversation, each the answer of its operation. */

const sources = [
  ['portico://holdings', 'wallets_holdings'],
  ['portico://wallets', 'wallets_list'],
  ['portico://chains', 'chains_list'],
  ['portico://perp/markets', 'perp_markets'],
  ['portico://perp/orders', 'perp_orders'],
  ['portico://spot_venue/markets', 'spot_venue_markets'],
  ['portico://spot_venue/orders', 'spot_venue_orders'],
  ['portico://earn/positions', 'earn_positions'],
  ['portico://policy', 'policy_show'],
  ['portico://capabilities', 'discovery_capabilities'],
] as const

export type ResourceView = { uri: string; name: string; title: string; description: string; mimeType: string }
export type Resources = {
  list: readonly ResourceView[]
  /** Undefined where there is no such resource. */
  read(uri: string, facts: CallFacts): Promise<{ uri: string; mimeType: string; text: string } | undefined>
}

const mimeType = 'application/json'

export function createResources(toolbox: Toolbox): Resources {
  const list = sources.flatMap(([uri, operation]): ResourceView[] => {
    const tool = toolbox.byName.get(operation)
    return tool
      ? [{ uri, name: operation, title: tool.view.title, description: tool.view.description, mimeType }]
      : []
  })
  const operations = new Map(list.map(({ uri, name }) => [uri, name]))
  return {
    list,
    async read(uri, facts) {
      const operation = operations.get(uri)
      const result = operation && (await callTool(toolbox, operation, {}, facts))
      return result ? { uri, mimeType, text: result.content.map(({ text }) => text).join('\n') } : undefined
    },
  }
}
