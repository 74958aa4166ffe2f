import { yesOrNo } from './field-value-words.ts'
import { amountText, chainWords, numberText, spelled, tokenWords, usdText } from './value-words.ts'
import { joined, type Writer } from './writer.ts'

/** An outcome is printed by its id: its name and question are words of a stranger. */
const order: Writer = ({ take }) => {
  const side = take('side') ?? null
  const outcome = take('outcome_id') ?? take('token_id') ?? null
  const [usd, sold, size] = [take('amount_usd'), take('amount_shares'), take('size')]
  const shares = sold ?? size
  const price = take('price')
  const worst = take('worst_price')
  const count = shares === undefined ? 'shares' : `${numberText(shares)} shares`
  const cost = usd === undefined ? '' : ` for ${usdText(usd)}`
  return {
    title: `${side === 'SELL' ? 'Sell' : 'Buy'} ${count}${cost} at Polymarket`,
    lines: [
      `Outcome: ${spelled(outcome)}`,
      `Side: ${spelled(side)}`,
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
  const all = take('cancel_all')
  return {
    title: `Cancel ${all === true ? 'every order and exit' : condition === undefined ? 'orders or exits' : 'every order and exit of a market'} at Polymarket`,
    lines: [
      condition === undefined ? undefined : `Market: ${spelled(condition)}`,
      all === undefined ? undefined : `All of them: ${yesOrNo(all)}`,
    ],
  }
}

const fund: Writer = ({ take, lists }) => {
  const place = chainWords(take('source_chain_id') ?? '137', lists)
  const token = tokenWords(take('source_token_address') ?? 'USDC', place.chain, lists)
  const [units, usd] = [take('amount'), take('amount_usd')]
  const amount = amountText({ units, usd }, token.token)
  return {
    title: `Move ${joined(amount, token.name)} to Polymarket, from your wallet on ${place.text}`,
    lines: [
      `Amount: ${joined(amount, token.text)} on ${place.text}`,
      units !== undefined && usd !== undefined ? `Amount: ${usdText(usd)}` : undefined,
    ],
  }
}

const withdraw: Writer = ({ take, lists }) => {
  const amount = usdText(take('amount_usdc') ?? null)
  const { text } = chainWords(take('destination_chain_id') ?? '137', lists)
  return {
    title: `Withdraw ${amount} from Polymarket, to your wallet on ${text}`,
    lines: [`Amount: ${amount}, to ${text}`],
  }
}

const redeem: Writer = ({ take }) => {
  const condition = take('condition_id')
  const all = take('all')
  return {
    title: `Redeem the shares of ${all === true ? 'every resolved market' : 'a resolved market'} at Polymarket`,
    lines: [
      condition === undefined ? undefined : `Market: ${spelled(condition)}`,
      all === undefined ? undefined : `All of them: ${yesOrNo(all)}`,
    ],
  }
}

export const predictionWriters: Readonly<Record<string, Writer>> = {
  predmkt_order: order,
  predmkt_cancel: cancel,
  predmkt_fund: fund,
  predmkt_withdraw: withdraw,
  predmkt_redeem: redeem,
}
