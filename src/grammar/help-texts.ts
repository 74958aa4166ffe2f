import { hintTexts } from './fault-words.ts'
import { frames } from './frames.ts'
import { topics } from './help-topics.ts'
import { noteTexts } from './understanding.ts'

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
}
const examplesOfDomain = 3

/** Returns examples of a domain that this chat answers by itself, without those that have digits. */
const examplesOf = (domain: string): string[] =>
  frames
    .filter((frame) => frame.domain === domain && frame.route === undefined && !frame.isUnoffered)
    .flatMap((frame) => frame.examples.find((example) => !/\d/.test(example)) ?? [])
    .slice(0, examplesOfDomain)

const overview = (): string =>
  [
    'These are examples of what can be said:',
    ...Object.entries(domains).map(
      ([domain, title]) =>
        `${title}: ${examplesOf(domain)
          .map((example) => `"${example}"`)
          .join(', ')}`,
    ),
    'Orders are done only where you give them yourself, in a sentence of your own.',
    'Charts, indicators and reports are the work of other agents, for more credits: ask for one, such as the rsi of eth, to learn how.',
  ].join('\n')

export const helpText = (topic: string | undefined): string =>
  topic === undefined ? overview() : (topics[topic]?.text ?? overview())

/** Returns every wording that a help text, a note or a refusal offers. */
export function helpExamples(): string[] {
  const texts = [
    overview(),
    ...Object.values(topics).map(({ text }) => text),
    ...Object.values(noteTexts),
    ...frames.flatMap(({ refusal }) => refusal ?? []),
    ...hintTexts(),
  ]
  const quoted = texts.flatMap((text) => [...text.matchAll(/"([^"]+)"/g)])
  return [...new Set(quoted.map(([, example = '']) => example))]
}
