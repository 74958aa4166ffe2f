import { frames } from './frames.ts'

/** What a term means here. No text has a digit: a figure comes from an operation. */
const topics: Readonly<Record<string, string>> = {
  slippage:
    'Slippage is how far the result may be worse than the quote before the order is void. Say it with the order: "with one percent slippage".',
  funding:
    'Funding is paid between longs and shorts each hour, so that the perpetual follows its index. A positive rate is paid by longs. Ask "funding on eth".',
  liquidation:
    'A position is liquidated where its margin no longer covers the loss. Ask "how far am i from liquidation".',
  trailing:
    'A trailing stop follows the highest price at a distance and sells when the price falls back by it. Say "trailing stop of ten percent on my jup".',
  limit:
    'A limit order waits for a price and swaps when it is reached. Say "buy fifty dollars of eth below" and the price.',
  stop: 'A stop-loss sells when the price falls to it, a take-profit when it rises to it. Say "set a stop on my bonk" with a price or a percentage.',
  leverage:
    'Leverage multiplies the position over its margin, and the loss with it. Say it with the order: "long eth, fifty dollars, two times leverage". The amount is the size of the position.',
  perp: 'A perpetual is a position without an end, long or short, with margin. Say "long eth" or "short eth" with an amount and a leverage; a stop and a target may follow. Set-up and funds come first: "set up perps", "fund perps".',
  bridge:
    'A bridge moves a token between chains within your own wallets. Say "bridge fifty usdc from base to solana".',
  earn: 'The vault pays a yield on USDC. Ask "current apy", say "deposit fifty usdc into the vault" or "withdraw everything from the vault".',
  credits: 'Messages of this chat cost credits. Ask "credits left" or "what do credit packs cost".',
  gas: 'Transactions are paid for by the service on chains that are gasless. Ask "gas fees".',
  security:
    'The security check asks whether a token can be sold again, what it taxes and who controls it. Ask "is bonk safe", or give an address.',
  kill_switch:
    'The kill switch stops everything that opens or spends; cancels, closes and reads go on. Say "stop everything now". Only a person lifts it.',
  limits:
    'Limits bound each transaction and each day. Ask "my limits" or lower one: "lower my daily limit". Only a person raises them.',
  spot: 'The spot venue trades coins against USDC. Say "spot buy" with an amount and a coin.',
  swap: 'A swap turns one token into another, without gas. Say "buy fifty dollars of eth on base", "sell half of my wif" or "swap my dai into usdc" with an amount.',
  deposit: 'Send tokens to your own address; it is the same on every EVM chain. Ask "my wallet address".',
  withdraw:
    'Margin and deposits go back to your own wallet: "withdraw everything from perps", "withdraw everything from the vault".',
}

const domains: Readonly<Record<string, string>> = {
  market: 'Markets',
  portfolio: 'Portfolio',
  token: 'Tokens and chains',
  swap: 'Swaps',
  conditional: 'Orders that wait',
  perp: 'Perpetuals',
  'spot venue': 'Spot',
  earn: 'Vault',
  account: 'Account',
  research: 'Research',
}

/** One example of each domain, without those that have digits. */
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
  topic === undefined ? overview() : (topics[topic] ?? overview())
export const explainedTopics: readonly string[] = Object.keys(topics)
