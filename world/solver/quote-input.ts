import { fromBase58 } from '#world/solana/base58.ts'
import { type Currency, chainById, currencyAt, type SolverChain } from './chains.ts'
import { rejectQuote } from './errors.ts'

export type TradeType = 'EXACT_INPUT' | 'EXACT_OUTPUT' | 'EXPECTED_OUTPUT'

export type QuoteInput = {
  user: string
  recipient: string
  refundTo?: string
  referrer?: string
  origin: SolverChain
  destination: SolverChain
  input: Currency
  output: Currency
  amount: bigint
  tradeType: TradeType
  slippageBps: number
  ttlSeconds: number
  ignoresImpact: boolean
}

const tradeTypes: readonly TradeType[] = ['EXACT_INPUT', 'EXACT_OUTPUT', 'EXPECTED_OUTPUT']
const defaultSlippageBps = 50
/** A quote without a time-to-live of its own. */
const defaultTtlSeconds = 600
const ttlSecondsMax = 30 * 86_400

export const isAddressOf = (chain: SolverChain, text: string): boolean =>
  chain.vm === 'evm' ? /^0x[0-9a-fA-F]{40}$/.test(text) : fromBase58(text)?.length === 32

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

const requireField = (fields: Record<string, unknown>, name: string): unknown => {
  const value = fields[name]
  if (value === undefined || value === null || value === '')
    return rejectQuote('INVALID_INPUT', `body must have required property '${name}'`)
  return value
}

const chainOf = (value: unknown): SolverChain =>
  chainById(Number(value)) ?? rejectQuote('UNSUPPORTED_CHAIN', `Chain ${String(value)} is not supported`)

const currencyOf = (chain: SolverChain, value: unknown, errorCode: string): Currency => {
  const text = textOf(value) ?? ''
  if (!isAddressOf(chain, text))
    return rejectQuote(errorCode, `Invalid address ${text} for chain ${chain.id}`)
  return currencyAt(chain, text) ?? rejectQuote('NO_SWAP_ROUTES_FOUND', 'No routes found')
}

const addressOf = (chain: SolverChain, value: unknown, errorCode: string): string => {
  const text = textOf(value) ?? ''
  if (!isAddressOf(chain, text))
    return rejectQuote(errorCode, `Invalid address ${text} for chain ${chain.id}`)
  return chain.vm === 'evm' ? text.toLowerCase() : text
}

const amountOf = (value: unknown): bigint => {
  const text = String(value)
  if (!/^\d{1,60}$/.test(text))
    return rejectQuote('INVALID_INPUT', 'amount must be an integer in the smallest unit')
  return BigInt(text) === 0n ? rejectQuote('AMOUNT_TOO_LOW', 'Amount must be greater than 0') : BigInt(text)
}

const slippageOf = (value: unknown): number => {
  if (value === undefined) return defaultSlippageBps
  const text = String(value)
  if (!/^\d{1,5}$/.test(text) || Number(text) > 10_000)
    return rejectQuote('INVALID_SLIPPAGE_TOLERANCE', 'slippageTolerance must be an integer from 0 to 10000')
  return Number(text)
}

const ttlOf = (value: unknown): number => {
  if (value === undefined) return defaultTtlSeconds
  if (typeof value !== 'number' || !(value > 0) || value > ttlSecondsMax)
    return rejectQuote('INVALID_INPUT', `ttl must be a number of seconds up to ${ttlSecondsMax}`)
  return value
}

/** Reads the body of a quote; a part of Relay's that this solver does not have is rejected and not ignored. */
export const readQuoteInput = (fields: Record<string, unknown>): QuoteInput => {
  const origin = chainOf(requireField(fields, 'originChainId'))
  const destination = chainOf(requireField(fields, 'destinationChainId'))
  const user = addressOf(origin, requireField(fields, 'user'), 'INVALID_ADDRESS')
  const tradeType =
    tradeTypes.find((each) => each === requireField(fields, 'tradeType')) ??
    rejectQuote('INVALID_INPUT', `tradeType must be one of ${tradeTypes.join(', ')}`)
  for (const name of ['txs', 'useDepositAddress', 'usePermit', 'useExternalLiquidity', 'appFees'])
    if (fields[name] === true || (Array.isArray(fields[name]) && fields[name].length > 0))
      rejectQuote('UNSUPPORTED_ROUTE', `${name} is not supported by the local solver`)
  const refundTo =
    fields.refundTo === undefined ? undefined : addressOf(origin, fields.refundTo, 'INVALID_ADDRESS')
  const referrer = textOf(fields.referrer)
  return {
    user,
    recipient: addressOf(destination, fields.recipient ?? fields.user, 'INVALID_RECIPIENT'),
    ...(refundTo !== undefined && { refundTo }),
    ...(referrer !== undefined && { referrer }),
    origin,
    destination,
    input: currencyOf(origin, requireField(fields, 'originCurrency'), 'INVALID_INPUT_CURRENCY'),
    output: currencyOf(destination, requireField(fields, 'destinationCurrency'), 'INVALID_OUTPUT_CURRENCY'),
    amount: amountOf(requireField(fields, 'amount')),
    tradeType,
    slippageBps: slippageOf(fields.slippageTolerance),
    ttlSeconds: ttlOf(fields.ttl),
    ignoresImpact: fields.overridePriceImpact === true,
  }
}
