import type { Json } from '#kernel/wire/json.ts'
import { amountText, chainWords, numberText, spelled, tokenWords, usdText } from './value-words.ts'
import { type Given, joined, type Line, type Writer } from './writer.ts'

/** Writes a transfer between a wallet and the venue; the call may leave its token and the wallet's chain open. */
const venueMoney =
  (fields: { chain: string; token: string }, title: (amount: string) => string): Writer =>
  (given) => {
    const { take, lists } = given
    const chainRef = take(fields.chain)
    const ref = take(fields.token)
    const place = chainWords(chainRef ?? 'arbitrum', lists)
    const words = tokenWords(ref ?? 'USDC', place.chain, lists)
    const [units, usd] = [take('amount'), take('amount_usd')]
    const amount = amountText({ units, usd }, words.token)
    const both = units !== undefined && usd !== undefined ? `Amount: ${usdText(usd)}` : undefined
    return {
      title: `${title(joined(amount, words.name))} on ${place.text}`,
      lines: [`Amount: ${joined(amount, words.text)} on ${place.text}`, both],
    }
  }

const marketName = (value: Json | undefined): string => (value === undefined ? 'all markets' : spelled(value))
const sizeOf = (size: Json, market: string): string =>
  /^[A-Za-z0-9]+$/.test(market) ? `${numberText(size)} ${market}` : `${numberText(size)} of ${market}`

type Sized = { size: string | undefined; lines: readonly Line[] }
function takeSize({ take }: Given, market: string, worth: { field: string; unit: string }): Sized {
  const [size, value] = [take('size'), take(worth.field)]
  const inAsset = size === undefined ? undefined : sizeOf(size, market)
  const inMoney = value === undefined ? undefined : `${numberText(value)} ${worth.unit} of ${market}`
  return {
    size: inAsset ?? inMoney,
    lines: [inAsset && `Size: ${inAsset}`, inMoney && `Worth: ${inMoney}`],
  }
}

const perpOpen: Writer = (given) => {
  const market = marketName(given.take('asset'))
  const [isBuy, side] = [given.take('is_buy'), given.take('side')]
  const isLong = typeof isBuy === 'boolean' ? isBuy : String(side).toLowerCase() === 'long'
  const { size = market, lines } = takeSize(given, market, { field: 'notional_usd', unit: 'USD' })
  const leverage = given.take('leverage')
  const times = leverage === undefined ? '' : `${numberText(leverage)}x `
  return {
    title: `Open a ${times}${isLong ? 'long' : 'short'} of ${size} on Hyperliquid`,
    lines: [
      `Market: ${market}, a perpetual on Hyperliquid`,
      side === undefined ? undefined : `Side: ${spelled(side)}`,
      isBuy === undefined ? undefined : `Side: ${isBuy === true ? 'long, a buy' : 'short, a sale'}`,
      ...lines,
      leverage === undefined
        ? 'Leverage: that of the position, else of the account, else 1x'
        : `Leverage: ${times.trim()}`,
    ],
  }
}

type Deal = { title: (size: string | undefined, market: string) => string; all?: string }

const venueDeal =
  (kind: string, { title, all }: Deal): Writer =>
  (given) => {
    const market = marketName(given.take('asset'))
    const { size, lines } = takeSize(given, market, { field: 'notional_usdc', unit: 'USDC' })
    return {
      title: `${title(size, market)} on Hyperliquid`,
      lines: [
        `Market: ${market}, ${kind} on Hyperliquid`,
        ...lines,
        size === undefined && all !== undefined ? `Size: ${all}` : undefined,
      ],
    }
  }
const perp = 'a perpetual'
const spot = 'spot against USDC'

const cancelOrder = (kind: string): Writer => {
  return ({ take }) => {
    const order = spelled(take('order_id') ?? take('oid') ?? null)
    const market = take('asset')
    return {
      title: `Cancel ${kind} on Hyperliquid`,
      lines: [`Order: ${order}`, market === undefined ? undefined : `Market: ${spelled(market)}`],
    }
  }
}
const cancelAll = (kind: string): Writer => {
  return ({ take }) => {
    const market = marketName(take('asset'))
    return { title: `Cancel every ${kind} in ${market} on Hyperliquid`, lines: [`Market: ${market}`] }
  }
}

export const venueWriters: Readonly<Record<string, Writer>> = {
  perp_open: perpOpen,
  perp_close: venueDeal(perp, {
    title: (size, market) => `Close ${size ? `${size} of the position` : `the whole position in ${market}`}`,
    all: 'the whole position',
  }),
  perp_tp_sl: venueDeal(perp, {
    title: (size, market) =>
      `Set the exits of ${size ? `${size} of the position` : `the position in ${market}`}`,
    all: 'the whole position, also when its size changes',
  }),
  perp_cancel: cancelOrder('an order or trigger of perpetuals'),
  perp_cancel_all: cancelAll('order and trigger of perpetuals'),
  perp_fund: venueMoney(
    { chain: 'source_chain_id', token: 'source_token' },
    (amount) => `Move ${amount} to Hyperliquid, from your wallet`,
  ),
  perp_withdraw: venueMoney(
    { chain: 'destination_chain_id', token: 'destination_token' },
    (amount) => `Withdraw ${amount} from Hyperliquid, to your wallet`,
  ),
  spot_venue_buy: venueDeal(spot, { title: (size, market) => `Buy ${size ?? market}` }),
  spot_venue_sell: venueDeal(spot, {
    title: (size, market) => `Sell ${size ?? `all free ${market}`}`,
    all: 'everything that is free',
  }),
  spot_venue_tp_sl: venueDeal(spot, {
    title: (size, market) => `Leave exits for ${size ?? `all free ${market}`}`,
    all: 'what is free when the price is reached',
  }),
  spot_venue_cancel: cancelOrder('a spot order or trigger'),
  spot_venue_cancel_all: cancelAll('spot order and trigger'),
}
