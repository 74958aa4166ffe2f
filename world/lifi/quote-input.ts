import { type Currency, currencyAt, type SolverChain } from '#world/solver/chains.ts'
import { invalid, noQuote } from './errors.ts'
import { chainNamed } from './views.ts'

export type LifiQuoteInput = {
  user: string
  recipient: string
  origin: SolverChain
  destination: SolverChain
  input: Currency
  output: Currency
  amount: bigint
  slippageBps: number
  integrator: string
  bridges: readonly string[]
  exchanges: readonly string[]
}

const fullBps = 10_000
const defaultSlippage = '0.005'
const required = ['fromChain', 'toChain', 'fromToken', 'toToken', 'fromAddress', 'fromAmount'] as const

const addressOf = (name: string, text: string): string =>
  /^0x[0-9a-fA-F]{40}$/.test(text)
    ? text.toLowerCase()
    : invalid(`/${name} Invalid address: ${text.slice(0, 64)}`)

const chainOf = (name: string, text: string): SolverChain =>
  chainNamed(text) ?? invalid(`/${name} must be equal to one of the allowed values`)

const currencyOf = (name: string, chain: SolverChain, text: string): Currency => {
  const found = [chain.native, ...chain.tokens].find(
    ({ symbol }) => symbol.toLowerCase() === text.toLowerCase(),
  )
  if (found) return found
  return currencyAt(chain, addressOf(name, text)) ?? noQuote()
}

const slippageOf = (text: string): number => {
  const value = /^\d(\.\d{1,10})?$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= 0 && value <= 1)) invalid('/slippage must be a number from 0 to 1')
  return Math.round(value * fullBps)
}

const toolsOf = (query: URLSearchParams, name: string): string[] =>
  query.getAll(name).flatMap((each) => each.split(','))

export const readQuoteInput = (query: URLSearchParams): LifiQuoteInput => {
  for (const name of required) if (!query.get(name)) invalid(`must have required property '${name}'`)
  const text = (name: string) => query.get(name) ?? ''
  const origin = chainOf('fromChain', text('fromChain'))
  const destination = chainOf('toChain', text('toChain'))
  const amount = /^\d{1,60}$/.test(text('fromAmount')) ? BigInt(text('fromAmount')) : 0n
  if (amount === 0n) invalid('/fromAmount must be a positive integer')
  const user = addressOf('fromAddress', text('fromAddress'))
  const toAddress = query.get('toAddress')
  return {
    user,
    recipient: toAddress ? addressOf('toAddress', toAddress) : user,
    origin,
    destination,
    input: currencyOf('fromToken', origin, text('fromToken')),
    output: currencyOf('toToken', destination, text('toToken')),
    amount,
    slippageBps: slippageOf(query.get('slippage') ?? defaultSlippage),
    integrator: query.get('integrator') ?? 'lifi-api',
    bridges: toolsOf(query, 'allowBridges'),
    exchanges: toolsOf(query, 'allowExchanges'),
  }
}
