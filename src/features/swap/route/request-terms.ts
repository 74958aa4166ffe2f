import {
  checkTpSl,
  type FixedTpSl,
  type HookLegInput,
  listedTpSl,
  singleTpSl,
} from '#engines/trigger-orders/tp-sl.ts'
import type { SwapInput } from '#features/swap/contract.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import type { Wallet } from '#features/wallets/store.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/contract/fault.ts'
import { type ServedTokens, sellableToken } from '#kernel/contract/token-ref.ts'
import { type Chain, sameAddress } from '#kernel/money/chains.ts'
import { fromUnits, mulDiv, toFixedPoint, toMicros, usdDecimals, valueMicros } from '#kernel/money/money.ts'
import { swapLimits } from './limits.ts'
import type { AskedTerms, GivenAmount } from './terms.ts'
import { priceKeyOf } from './token-value.ts'

type RequestDeps = Pick<SwapDeps, 'chains' | 'evmOf' | 'walletsOf' | 'prices'>
/** The names that the request has for the fields of a swap. */
export type SwapFields = Record<
  'chain_id_in' | 'chain_id_out' | 'token_in' | 'token_out' | 'amount' | 'amount_usd',
  string
>
export const swapFields: SwapFields = {
  chain_id_in: 'chain_id_in',
  chain_id_out: 'chain_id_out',
  token_in: 'token_in',
  token_out: 'token_out',
  amount: 'amount',
  amount_usd: 'amount_usd',
}

/** Maps the field names of providers, which quote amounts in units, to the names in the request. */
export const providerFields = (given: GivenAmount, fields: SwapFields = swapFields): SwapFields => ({
  ...fields,
  amount: amountField(given, fields),
})

const amountField = (given: GivenAmount, fields: SwapFields): string =>
  'amount' in given ? fields.amount : fields.amount_usd

type TermsOptions = { userId: string; fields?: SwapFields }

export async function termsOf(
  deps: RequestDeps,
  input: SwapInput,
  { userId, fields = swapFields }: TermsOptions,
): Promise<AskedTerms> {
  const legs = requestedLegs(input)
  const asked = await readRequest(deps, input, { userId, fields })
  return { ...asked, legs, ...(await amountOf(deps, asked, fields)) }
}

/** Returns the stop-loss and take-profit legs of a request, after the checks that need no data. */
const requestedLegs = ({ stop_loss: stops, take_profit: profits }: SwapInput): FixedTpSl[] =>
  [...wanted(stops, 'stop_loss'), ...wanted(profits, 'take_profit')].map(checkTpSl)

const wanted = (given: HookLegInput | HookLegInput[] | undefined, type: 'stop_loss' | 'take_profit') =>
  Array.isArray(given) ? listedTpSl(given, type, type) : singleTpSl(given, type)

async function readRequest(
  { chains, evmOf, walletsOf }: RequestDeps,
  input: SwapInput,
  { userId, fields }: Required<TermsOptions>,
): Promise<Omit<AskedTerms, 'legs' | 'amountInUnits' | 'valueInMicros'>> {
  const given = givenAmount(input, fields)
  const served: ServedTokens = {
    group: 'Swaps',
    chains,
    tokenFacts: async (chainId, address) => evmOf(chainId)?.tokenFacts(address),
  }
  const [origin, destination, wallets] = await Promise.all([
    sellableToken(served, {
      chain: input.chain_id_in,
      chainField: fields.chain_id_in,
      token: input.token_in,
      field: fields.token_in,
    }),
    sellableToken(served, {
      chain: input.chain_id_out ?? input.chain_id_in,
      chainField: fields.chain_id_out,
      token: input.token_out,
      field: fields.token_out,
    }),
    walletsOf(userId),
  ])
  if (
    origin.chain === destination.chain &&
    sameAddress(origin.chain, origin.token.address, destination.token.address)
  )
    throw invalid(
      fields.token_out,
      'unsupported_asset',
      `Input should be another token than \`${fields.token_in}\``,
    )
  const account = accountOn(origin.chain, wallets)
  const recipient = accountOn(destination.chain, wallets)
  if (input.recipient && !sameAddress(destination.chain, input.recipient, recipient))
    throw invalid(
      'recipient',
      'value_error',
      `Input should be your own wallet on ${destination.chain.displayName}: ${recipient}`,
    )
  return {
    userId,
    origin,
    destination,
    account,
    recipient,
    given,
    quoteId: input.quote_id || null,
    cancelsHooks: input.cancel_conditional_orders ?? false,
    slippageBps: input.slippage_bps ?? swapLimits.slippageBps.default,
    maxImpactBps: input.max_price_impact_bps ?? swapLimits.priceImpactBps.default,
    deadlineSeconds: input.deadline_seconds ?? swapLimits.deadlineSeconds.default,
    maxFeeBps: input.max_fee_bps ?? null,
  }
}

function givenAmount({ amount, amount_usd }: SwapInput, fields: SwapFields): GivenAmount {
  if (amount !== undefined && amount_usd === undefined) return { amount: String(amount) }
  if (amount === undefined && amount_usd !== undefined) return { amount_usd }
  throw exactlyOneOf(fields.amount, fields.amount_usd, { hasBoth: amount !== undefined })
}

export function accountOn({ family }: Chain, wallets: readonly Wallet[]): string {
  const found = wallets.find(({ kind }) => kind === (family === 'evm' ? 'evm' : 'svm'))
  if (found) return found.address
  throw new Fault('unavailable', 'The wallets are still being made; try again')
}

async function amountOf(
  { prices }: RequestDeps,
  { given, origin }: Pick<AskedTerms, 'given' | 'origin'>,
  fields: SwapFields,
) {
  const field = amountField(given, fields)
  const key = priceKeyOf(origin)
  const price = (await prices.get([key])).get(key)?.price
  const { decimals, symbol } = origin.token
  if ('amount_usd' in given && price === undefined)
    throw new Fault(
      'unavailable',
      `There is no trusted price of ${symbol}; send \`${fields.amount}\` instead`,
    )
  const amountInUnits =
    'amount' in given
      ? BigInt(given.amount)
      : mulDiv(toFixedPoint(given.amount_usd), 10n ** BigInt(decimals), toFixedPoint(price!))
  if (amountInUnits === 0n) throw invalid(field, 'greater_than', 'Input should be greater than 0', { gt: 0 })
  const valueInMicros = price === undefined ? null : valueMicros(amountInUnits, decimals, price, 'up')
  if (valueInMicros !== null && valueInMicros < toMicros(swapLimits.minSwapUsd))
    throw invalid(
      field,
      'below_minimum',
      `Input should be worth at least ${swapLimits.minSwapUsd} USD, and is worth ${fromUnits(valueInMicros, usdDecimals)}`,
      { minimum: swapLimits.minSwapUsd, unit: 'USD' },
    )
  return { amountInUnits, valueInMicros }
}
