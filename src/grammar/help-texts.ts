import { frames } from './frames.ts'
import { topics } from './help-topics.ts'

const domains: Readonly<Record<string, string>> = {
  market: 'Markets',
  portfolio: 'Portfolio',
  token: 'Tokens and chains',
  swap: 'Swaps',
  conditional: 'Orders that wait',
  perp: 'Perpetuals',
  'spot venue': 'Spot',
  earn: 'Vault',
  predictions: 'Prediction markets',
  account: 'Account',
  research: 'Research',
}

/** Lists one example of each intent by domain, without the examples that have digits. */
const overview = (): string =>
  [
    'These are examples of what can be said:',
    ...Object.entries(domains).map(([domain, title]) => {
      const examples = frames
        .filter((frame) => frame.domain === domain)
        .flatMap((frame) => frame.examples.find((example) => !/\d/.test(example)) ?? [])
      return `${title}: ${examples
        .slice(0, 3)
        .map((example) => `"${example}"`)
        .join(', ')}`
    }),
    'Orders are done only where you give them yourself, in a sentence of your own.',
  ].join('\n')

export const helpText = (topic: string | undefined): string =>
  topic === undefined ? overview() : (topics[topic]?.text ?? overview())
