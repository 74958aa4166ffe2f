/** The published types of Relay's client. */
import { join } from 'node:path'
import { publishedTypes } from '../published-schemas.ts'

const answer = (path: string, method: string, status = 200) =>
  `paths['${path}']['${method}']['responses']['${status}']['content']['application/json']`

const types = {
  Quote: answer('/quote/v2', 'post'),
  QuoteError: answer('/quote/v2', 'post', 400),
  Status: answer('/intents/status/v3', 'get'),
  Requests: answer('/requests/v3', 'get'),
  Chains: answer('/chains', 'get'),
  Currencies: answer('/currencies/v2', 'post'),
  TokenPrice: answer('/currencies/token/price', 'get'),
  Notified: answer('/transactions/index', 'post'),
} as const

export type PublishedType = keyof typeof types

export const typeErrors = publishedTypes<PublishedType>({
  name: '@relayprotocol/relay-sdk',
  importLine: (folder) => `import type { paths } from '${join(folder, '_types', 'src', 'types', 'api')}'`,
  types,
})
