import { chainWords, numberText, spelled, tokenWords, usdText } from './value-words.ts'
import type { Writer } from './writer.ts'

/** An outcome is printed by its id: its name and question are words of a stranger. */
const order: Writer = ({ take }) => {
  const isSale = take('side') === 'SELL'
  const outcome = take('outcome_id') ?? take('token_id') ?? null
  const [usd, sold, size] = [take('amount_usd'), take('amount_shares'), take('size')]
  const shares = sold ?? size
  const price = take('price')
  const worst = take('worst_price')
  const count = shares === undefined ? 'shares' : `${numberText(shares)} shares`
  const cost = usd === undefined ? '' : ` for ${usdText(usd)}`
  return {
    title: `${isSale ? 'Sell' : 'Buy'} ${count}${cost} at Polymarket`,
    lines: [
      `Outcome: ${spelled(outcome)}`,
      usd === undefined ? undefined : `Pay: at most ${usdText(usd)}, fee included`,
      sold === undefined ? undefined : `Shares: ${numberText(sold)}`,
      size === undefined ? undefined : `Size: ${numberText(size)} shares`,
      price === undefined ? undefined : `Price: ${usdText(price)} for one share`,
      worst === undefined ? undefined : `Worst price: ${usdText(worst)} for one share`,
    ],
  }
}

const cancel: Writer = ({ take }) => {
  const condition = take('condition_id') ?? take('market_id')
  const isAll = take('cancel_all') === true
  return {
    title: `Cancel ${isAll ? 'every order and exit' : condition === undefined ? 'orders or exits' : 'every order and exit of a market'} at Polymarket`,
    lines: [
      condition === undefined ? undefined : `Market: ${spelled(condition)}`,
      isAll ? 'Orders: all of them' : undefined,
    ],
  }
}

const fund: Writer = ({ take, lists }) => {
  const place = chainWords(take('source_chain_id') ?? '137', lists)
  const { text } = tokenWords(take('source_token_address') ?? 'USDC', place.chain, lists)
  const [units, usd] = [take('amount'), take('amount_usd')]
  const amount = usd === undefined ? `${spelled(units ?? null)} smallest units` : usdText(usd)
  return {
    title: `Move ${amount} to Polymarket, from your wallet on ${place.text}`,
    lines: [
      `Pay: ${amount} of ${text} on ${place.text}`,
      units === undefined || usd === undefined ? undefined : `Amount: ${spelled(units)} smallest units`,
    ],
  }
}

const withdraw: Writer = ({ take, lists }) => {
  const amount = usdText(take('amount_usdc') ?? null)
  const { text } = chainWords(take('destination_chain_id') ?? '137', lists)
  return {
    title: `Withdraw ${amount} from Polymarket, to your wallet on ${text}`,
    lines: [`Amount: ${amount}`],
  }
}

const redeem: Writer = ({ take }) => {
  const condition = take('condition_id')
  const isAll = take('all') === true
  return {
    title: `Redeem the shares of ${isAll ? 'every resolved market' : 'a resolved market'} at Polymarket`,
    lines: [condition === undefined ? undefined : `Market: ${spelled(condition)}`],
  }
}

export const predictionWriters: Readonly<Record<string, Writer>> = {
  predmkt_order: order,
  predmkt_cancel: cancel,
  predmkt_fund: fund,
  predmkt_withdraw: withdraw,
  predmkt_redeem: redeem,
}
