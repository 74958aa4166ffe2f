import type { Json } from '#kernel/wire/json.ts'
import { yesOrNo } from './field-value-words.ts'
import {
  amountText,
  type ChainWords,
  chainWords,
  numberText,
  spelled,
  type TokenWords,
  tokenWords,
  usdText,
} from './value-words.ts'
import { type Given, joined, type Writer } from './writer.ts'

type TradedToken = TokenWords & { place: ChainWords }
type TokenFields = { chain: string; token: string }

const unnamedChain: ChainWords = { chain: undefined, text: 'a chain that is not named' }
const unnamedToken = 'a token that is not named'

function takeToken({ take, lists }: Given, fields: TokenFields, fallback = unnamedChain): TradedToken {
  const ref = take(fields.chain)
  const place = ref === undefined ? fallback : chainWords(ref, lists)
  const token = take(fields.token)
  return token === undefined
    ? { token: undefined, name: unnamedToken, text: unnamedToken, place }
    : { ...tokenWords(token, place.chain, lists), place }
}

/** Reads the sold amount of a call and words it. A call that has units and dollars gets a line for each. */
function takeSold({ take }: Given, { token, name, text, place }: TradedToken, label: string) {
  const [units, usd] = [take('amount'), take('amount_usd')]
  const both = units !== undefined && usd !== undefined ? `${label}: ${usdText(usd)} of ${text}` : undefined
  const amount = amountText({ units, usd }, token)
  return { short: joined(amount, name), lines: [`${label}: ${joined(amount, text)} on ${place.text}`, both] }
}

/** Reads and words the two tokens of a swap; their fields have the same names in every operation. */
function takePair(given: Given) {
  const sold = takeToken(given, { chain: 'chain_id_in', token: 'token_in' })
  const bought = takeToken(given, { chain: 'chain_id_out', token: 'token_out' }, sold.place)
  const paid = takeSold(given, sold, 'Sell')
  const isOneChain = sold.place.text === bought.place.text
  const route = isOneChain
    ? `${paid.short} for ${bought.name} on ${sold.place.text}`
    : `${paid.short} on ${sold.place.text} for ${bought.name} on ${bought.place.text}`
  return { bought, route, lines: [...paid.lines, `Buy: ${bought.text} on ${bought.place.text}`] }
}

const swap: Writer = (given) => {
  const { route, lines } = takePair(given)
  const recipient = given.take('recipient')
  const cancels = given.take('cancel_conditional_orders')
  const spell = (value: Json) =>
    typeof value === 'string' ? spelled(given.lists.spellAddress(value)) : spelled(value)
  return {
    title: `Swap ${route}`,
    lines: [
      ...lines,
      recipient === undefined ? undefined : `Recipient: ${spell(recipient)}`,
      cancels === undefined
        ? undefined
        : `Cancels the stops and take-profits on what is sold: ${yesOrNo(cancels)}`,
    ],
  }
}

const limitOrder: Writer = (given) => {
  const { bought, route, lines } = takePair(given)
  const { take, lists } = given
  const [price, condition] = [take('price_usd_trigger'), take('condition')]
  const chainRef = take('trigger_token_chain')
  const place = chainRef === undefined ? bought.place : chainWords(chainRef, lists)
  const ref = take('trigger_token_address')
  // If no token to watch is named, the price of the bought token counts, by its address on the chain of the trigger.
  const watched =
    ref === undefined && chainRef === undefined
      ? bought
      : { ...tokenWords(ref ?? bought.token?.address ?? bought.name, place.chain, lists), place }
  const side = condition === 'lte' ? 'or less' : condition === 'gte' ? 'or more' : spelled(condition ?? null)
  const at = `${usdText(price ?? null)} ${side}`
  return {
    title: `Swap ${route} once ${watched.name} is at ${at}`,
    lines: [...lines, `When: ${watched.text} on ${watched.place.text} is at ${at}`],
  }
}

const transfer: Writer = (given) => {
  const token = takeToken(given, { chain: 'chain_id', token: 'token' })
  const { short, lines } = takeSold(given, token, 'Send')
  const value = given.take('recipient') ?? null
  const recipient = spelled(typeof value === 'string' ? given.lists.spellAddress(value) : value)
  return {
    title: `Send ${short} to ${recipient} on ${token.place.text}`,
    lines: [...lines, `Recipient: ${recipient}`],
  }
}

const hooks: Writer = (given) => {
  const alias = given.take('chain')
  const place = alias === undefined ? undefined : chainWords(alias, given.lists)
  const token = takeToken(given, { chain: 'chain_id', token: 'token_address' }, place)
  const both = place && place.text !== token.place.text ? `Chain: ${place.text}` : undefined
  return {
    title: `Leave stops and take-profits on ${token.name} on ${token.place.text}`,
    lines: [`Token: ${token.text} on ${token.place.text}`, both],
  }
}

const deposit =
  (title: string): Writer =>
  (given) => {
    const amount = `${numberText(given.take('amount_usdc') ?? null)} USDC`
    return { title: `${title} ${amount} into the vault`, lines: [`Deposit: ${amount}`] }
  }

const withdrawal: Writer = (given) => {
  const value = given.take('amount_usdc')
  const amount = value === undefined ? undefined : `${numberText(value)} USDC`
  return {
    title: `Withdraw ${amount ?? 'everything'} from a position of the vault`,
    lines: [`Withdraw: ${amount ?? 'every share of the position'}`],
  }
}

const recharge: Writer = (given) => {
  const { chain, text } = chainWords(given.take('chain_id') ?? null, given.lists)
  const [usd, pack, token] = [given.take('amount_usd'), given.take('pack_id'), given.take('token_address')]
  const coin = chain?.native.symbol ?? 'the native coin'
  const what = usd === undefined ? `pack ${spelled(pack ?? null)}` : `a pack of ${usdText(usd)}`
  return {
    title: `Buy credits, ${what}, with ${coin} on ${text}`,
    lines: [
      usd === undefined ? undefined : `Pack: of ${usdText(usd)}`,
      pack === undefined ? undefined : `Pack: ${spelled(pack)}`,
      `Pay: ${token === undefined ? coin : tokenWords(token, chain, given.lists).text} on ${text}`,
    ],
  }
}

const outstanding: Writer = ({ take }) => {
  const ids = take('outstanding_order_ids')
  const all = take('all')
  const count = Array.isArray(ids) ? ids.length : 0
  const some = count === 1 ? 'one hook or limit order' : `${count} hooks and limit orders`
  return {
    title: `Cancel ${all === true ? 'every hook and limit order' : some}`,
    lines: [
      all === undefined ? undefined : `All of them: ${yesOrNo(all)}`,
      ...(Array.isArray(ids) ? ids.map((id) => `Order: ${spelled(id)}`) : []),
    ],
  }
}

export const tokenWriters: Readonly<Record<string, Writer>> = {
  swap_execute: swap,
  limit_orders_create: limitOrder,
  wallets_transfer: transfer,
  hooks_register: hooks,
  outstanding_orders_cancel: outstanding,
  credits_recharge: recharge,
  earn_enable: deposit('Make a first deposit of'),
  earn_deposit: deposit('Deposit'),
  earn_withdraw: withdrawal,
}
