/** The published types of LI.FI's API. */
import { join } from 'node:path'
import { publishedTypes } from '../published-schemas.ts'

const types = {
  Quote: 'LiFiStep',
  Status: 'StatusResponse',
  Chains: 'ChainsResponse',
  Tokens: 'TokensResponse',
  Tools: 'ToolsResponse',
} as const

export type PublishedType = keyof typeof types

export const typeErrors = publishedTypes<PublishedType>({
  name: '@lifi/types',
  importLine: (folder) =>
    `import type { LiFiStep, StatusResponse, ChainsResponse, TokensResponse, ToolsResponse } from '${join(folder, 'src', '_types', 'index')}'`,
  types,
})
