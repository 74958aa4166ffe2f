import { llmsText, skillText } from '#invoke/agent-documents.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { type CallFacts, callTool } from './call-tool.ts'
import { mainSelection } from './tool-selection.ts'
import type { Toolbox } from './tools.ts'

/**
 * A client may attach these resources to a conversation: reads without arguments, each with the answer of its
 * operation, and the documents for models, as they are served over HTTP.
 */

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

const documents = [
  {
    uri: 'portico://llms.txt',
    name: 'llms.txt',
    title: 'Every operation',
    description: 'Every operation of the gateway, by section, with its route and its tool.',
    mimeType: 'text/plain',
    write: llmsText,
  },
  {
    uri: 'portico://skill.md',
    name: 'skill.md',
    title: 'How to use the gateway',
    description: 'How to sign in, call, wait and handle errors, with every error code.',
    mimeType: 'text/markdown',
    write: skillText,
  },
] as const

export type ResourceView = { uri: string; name: string; title: string; description: string; mimeType: string }
export type Resources = {
  list: readonly ResourceView[]
  read(uri: string, facts: CallFacts): Promise<{ uri: string; mimeType: string; text: string } | undefined>
}

const mimeType = 'application/json'

type DocumentSources = { operations: readonly Operation[]; baseUrl: () => string }

export function createResources(toolbox: Toolbox, { operations: all, baseUrl }: DocumentSources): Resources {
  const reads = sources.flatMap(([uri, operation]): ResourceView[] => {
    const tool = toolbox.find(operation, mainSelection)
    return tool
      ? [{ uri, name: operation, title: tool.view.title, description: tool.view.description, mimeType }]
      : []
  })
  const operations = new Map(reads.map(({ uri, name }) => [uri, name]))
  return {
    list: [...reads, ...documents.map(({ write: _, ...view }) => view)],
    async read(uri, facts) {
      const document = documents.find((each) => each.uri === uri)
      if (document) return { uri, mimeType: document.mimeType, text: document.write(all, baseUrl()) }
      const operation = operations.get(uri)
      // A person attaches resources, which only read, whatever tools the model has.
      const result =
        operation && (await callTool(toolbox, operation, {}, { ...facts, selection: mainSelection }))
      if (!result || !('content' in result)) return undefined
      return { uri, mimeType, text: result.content.map(({ text }) => text).join('\n') }
    },
  }
}
