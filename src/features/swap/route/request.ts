import type { SwapInput } from '#features/swap/contract.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import type { Wallet } from '#features/wallets/store.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/contract/fault.ts'
import { chainByRef, namedToken } from '#kernel/contract/token-ref.ts'
import { assetOf, type Chain, sameAddress } from '#kernel/money/chains.ts'
import { fromUnits, mulDiv, toFixedPoint, toMicros, usdDecimals, valueMicros } from '#kernel/money/money.ts'
import { swapLimits } from './limits.ts'
import type { SwapTerms, SwapToken } from './terms.ts'

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
export const providerFields = (
  { amount }: Pick<SwapInput, 'amount'>,
  fields: SwapFields = swapFields,
): SwapFields => ({ ...fields, amount: amount === undefined ? fields.amount_usd : fields.amount })

export async function termsOf(
  deps: RequestDeps,
  input: SwapInput,
  { userId, fields = swapFields }: { userId: string; fields?: SwapFields },
): Promise<SwapTerms> {
  const { chains } = deps
  if ((input.amount === undefined) === (input.amount_usd === undefined))
    throw exactlyOneOf(fields.amount, fields.amount_usd, { hasBoth: input.amount !== undefined })
  const originChain = chainByRef(chains, input.chain_id_in, fields.chain_id_in)
  assertServed(originChain, fields.chain_id_in)
  const destinationChain =
    input.chain_id_out === undefined
      ? originChain
      : chainByRef(chains, input.chain_id_out, fields.chain_id_out)
  assertServed(destinationChain, fields.chain_id_out)
  const tokenFacts = async (chainId: string, address: string) => deps.evmOf(chainId)?.tokenFacts(address)
  const [tokenIn, tokenOut, wallets] = await Promise.all([
    namedToken(originChain, { ref: input.token_in, field: fields.token_in }, tokenFacts),
    namedToken(destinationChain, { ref: input.token_out, field: fields.token_out }, tokenFacts),
    deps.walletsOf(userId),
  ])
  const origin = { chain: originChain, ...tokenIn }
  const destination = { chain: destinationChain, ...tokenOut }
  if (
    originChain === destinationChain &&
    sameAddress(originChain, tokenIn.token.address, tokenOut.token.address)
  )
    throw invalid(
      fields.token_out,
      'unsupported_asset',
      `Input should be another token than \`${fields.token_in}\``,
    )
  const account = accountOn(originChain, wallets)
  const recipient = accountOn(destinationChain, wallets)
  if (input.recipient && !sameAddress(destinationChain, input.recipient, recipient))
    throw invalid(
      'recipient',
      'value_error',
      `Input should be your own wallet on ${destinationChain.displayName}: ${recipient}`,
    )
  const amount = await amountOf(deps, input, { origin, fields })
  return {
    userId,
    origin,
    destination,
    account,
    recipient,
    ...amount,
    slippageBps: input.slippage_bps ?? swapLimits.slippageBps.default,
    maxImpactBps: input.max_price_impact_bps ?? swapLimits.priceImpactBps.default,
    deadlineSeconds: input.deadline_seconds ?? swapLimits.deadlineSeconds.default,
    maxFeeBps: input.max_fee_bps ?? null,
  }
}

export function accountOn({ family }: Chain, wallets: readonly Wallet[]): string {
  const found = wallets.find(({ kind }) => kind === (family === 'evm' ? 'evm' : 'svm'))
  if (found) return found.address
  throw new Fault('unavailable', 'The wallets are still being made; try again')
}

function assertServed(chain: Chain, field: string): void {
  if (chain.family === 'evm' && chain.swaps === null)
    throw invalid(field, 'unsupported_chain', `Swaps do not serve ${chain.displayName}`)
}

export const priceKeyOf = ({ chain, token, isNative }: SwapToken): string =>
  isNative ? chain.native.priceId : `${chain.llamaSlug}:${token.address}`

export const assetNameOf = ({ chain, token }: SwapToken): string => assetOf(chain, token.address)

/** Returns the value in micro-dollars at the price source, or null if it has no price. */
export async function valueAtPrice(
  { prices }: Pick<SwapDeps, 'prices'>,
  token: SwapToken,
  amountUnits: bigint,
): Promise<bigint | null> {
  const price = (await prices.get([priceKeyOf(token)])).get(priceKeyOf(token))
  return price ? valueMicros(amountUnits, token.token.decimals, price.price, 'up') : null
}

type AmountOptions = { origin: SwapToken; fields: SwapFields }

async function amountOf({ prices }: RequestDeps, input: SwapInput, { origin, fields }: AmountOptions) {
  const field = input.amount === undefined ? fields.amount_usd : fields.amount
  const key = priceKeyOf(origin)
  const price = (await prices.get([key])).get(key)?.price
  const { decimals, symbol } = origin.token
  if (input.amount_usd !== undefined && price === undefined)
    throw new Fault(
      'unavailable',
      `There is no trusted price of ${symbol}; send \`${fields.amount}\` instead`,
    )
  const amountInUnits =
    input.amount_usd === undefined
      ? BigInt(input.amount!)
      : mulDiv(toFixedPoint(input.amount_usd), 10n ** BigInt(decimals), toFixedPoint(price!))
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
