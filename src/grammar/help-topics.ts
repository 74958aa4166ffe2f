import { type Concept, list } from './feature-rules.ts'

/**
 * Help texts that explain terms. A message asks for the first topic of which it contains a concept. No text has a
 * digit.
 */
export const topics: Readonly<Record<string, { concepts: readonly Concept[]; text: string }>> = {
  predictions: {
    concepts: list('PREDMKT PREDHELD'),
    text: 'A share of an outcome pays one dollar if the outcome is right, and nothing otherwise; its price is the probability that the market sees. Ask "what can i bet on" or "my bets". An order says how many dollars, on which outcome, and of which market.',
  },
  slippage: {
    concepts: list('SLIPPAGE'),
    text: 'Slippage is how far the result may be worse than the quote before the order is void. Say it with the order: "swap fifty usdc to eth on base with one percent slippage".',
  },
  funding: {
    concepts: list('FUNDING'),
    text: 'Funding is paid between longs and shorts each hour, so that the perpetual follows its index. A positive rate is paid by longs. Ask "funding on eth".',
  },
  liquidation: {
    concepts: list('LIQUIDATION'),
    text: 'A position is liquidated where its margin no longer covers the loss. Ask "how far am i from liquidation".',
  },
  trailing: {
    concepts: list('TRAILING'),
    text: 'A trailing stop follows the highest price at a distance and sells when the price falls back by it. Say "trailing stop of ten percent on my eth".',
  },
  limit: {
    concepts: list('LIMIT'),
    text: 'A limit order waits for a price and swaps when it is reached. Say "buy fifty dollars of eth on base at two thousand dollars".',
  },
  stop: {
    concepts: list('STOP TARGET'),
    text: 'A stop-loss sells when the price falls to it, a take-profit when it rises to it. Say "set a stop on my eth" with a price or a percentage.',
  },
  leverage: {
    concepts: list('LEVERAGE'),
    text: 'Leverage multiplies the position over its margin, and the loss with it. Say it with the order: "long eth, fifty dollars, two times leverage". The amount is the size of the position.',
  },
  perp: {
    concepts: list('LONG SHORT LONG_ SHORT_ PERP'),
    text: 'A perpetual is a position without an end, long or short, with margin. Say "long eth" or "short eth" with an amount and a leverage; a stop and a target may follow. Set-up and funds come first: "set up perps", "fund perps".',
  },
  bridge: {
    concepts: list('BRIDGE BRIDGE_'),
    text: 'A bridge moves a token between chains within your own wallets. Say "bridge fifty usdc from base to solana".',
  },
  earn: {
    concepts: list('EARN APY'),
    text: 'The vault pays a yield on USDC. Ask "current apy", say "deposit fifty usdc into the vault" or "withdraw everything from the vault".',
  },
  credits: {
    concepts: list('CREDITS'),
    text: 'Messages of this chat cost credits. Ask "credits left" or "what do credit packs cost".',
  },
  gas: {
    concepts: list('GAS'),
    text: 'Transactions are paid for by the service on chains that are gasless. Ask "gas fees".',
  },
  security: {
    concepts: list('SCAM'),
    text: 'The security check asks whether a token can be sold again, what it taxes and who controls it. Ask "is usdc safe", or give an address.',
  },
  kill_switch: {
    concepts: list('FREEZE'),
    text: 'The kill switch stops everything that opens or spends; cancels, closes and reads go on. Say "stop everything now". Only a person lifts it.',
  },
  limits: {
    concepts: list('LIMITS'),
    text: 'Limits bound each transaction and each day. Ask "my limits" or lower one: "lower my daily limit to five hundred dollars". Only a person raises them.',
  },
  spot: {
    concepts: list('SPOT'),
    text: 'The spot venue trades coins against USDC. Say "buy fifty dollars of hype on spot".',
  },
  swap: {
    concepts: list('SWAP SWAP_ BUY SELL BUY_'),
    text: 'A swap turns one token into another, without gas. Say "buy fifty dollars of eth on base", "sell half of my eth on base" or "swap fifty usdc into dai on base".',
  },
  deposit: {
    concepts: list('DEPOSIT ADDRESS'),
    text: 'Send tokens to your own address; it is the same on every EVM chain. Ask "my wallet address".',
  },
  withdraw: {
    concepts: list('WITHDRAW WITHDRAW_'),
    text: 'Margin and deposits go back to your own wallet: "withdraw everything from perps", "withdraw everything from the vault".',
  },
}
